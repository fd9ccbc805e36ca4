"""The composition root: the only room that names adapters. It puts the parts together, and the services do the rest."""
