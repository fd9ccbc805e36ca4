"""The import contract that import-linter does not have: modules that use the standard library and nothing else."""

import sys

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class StandardLibraryOnly(Contract):
    """Broken by any import of a third-party package, direct or through other modules of ours, eager or in a function.

    `source_modules` are checked together with everything below them.
    """

    type_name = "standard_library_only"

    source_modules = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002 - the signature is import-linter's
        """Return the shortest chain of imports to each third-party package that can be reached."""
        ours = {name.partition(".")[0] for name in self.source_modules}  # type: ignore[attr-defined]  # a field
        allowed = ours | sys.stdlib_module_names
        chains: list[str] = []
        for source in self.source_modules:  # type: ignore[attr-defined]  # a field
            for module in sorted(graph.find_upstream_modules(source, as_package=True)):
                if module.partition(".")[0] not in allowed:
                    chain = graph.find_shortest_chain(source, module, as_packages=True)
                    chains.append(" -> ".join(chain or (source, module)))
        return ContractCheck(kept=not chains, metadata={"chains": chains})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the chains."""
        for chain in check.metadata["chains"]:
            output.print_error(chain)
