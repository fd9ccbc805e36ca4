// One run of an official TypeScript client against Holdfast: takes JSON, prints what happened as JSON.
//   library   "client" (both eras) or "sdk" (handshake era)
//   era       "legacy", "modern" or "auto"
//   door      {kind: "stdio", command, args, env} or {kind: "http", url, key}
//   scenario  "files" with {path, missing} or "long" with {label, characters}
const given = JSON.parse(process.argv[2]);

async function parts() {
  if (given.library === 'sdk') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    return { Client, StdioClientTransport, StreamableHTTPClientTransport };
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  return { Client, StdioClientTransport, StreamableHTTPClientTransport };
}

const { Client, StdioClientTransport, StreamableHTTPClientTransport } = await parts();

function transport() {
  const door = given.door;
  if (door.kind === 'stdio') {
    const { command, args, env } = door;
    return new StdioClientTransport({ command, args, env, stderr: 'ignore' });
  }
  const requestInit = { headers: { Authorization: `Bearer ${door.key}` } };
  return new StreamableHTTPClientTransport(new URL(door.url), { requestInit });
}

const mode = given.era === 'modern' ? { pin: '2026-07-28' } : given.era;
const client = new Client({ name: 'holdfast-test', version: '1' }, { versionNegotiation: { mode } });

const call = (name, args, options) =>
  given.library === 'sdk'
    ? client.callTool({ name, arguments: args }, undefined, options)
    : client.callTool({ name, arguments: args }, options);
const text = (result) => result.content.map((block) => block.text ?? '').join('\n');

async function files() {
  const { tools } = await client.listTools();
  const first = await call('read_text_file', { path: given.path });
  const edits = [{ oldText: 'draußen', newText: 'drinnen 🎉' }];
  const edited = await call('edit_file', { path: given.path, edits });
  const second = await call('read_text_file', { path: given.path });
  const missing = await call('read_text_file', { path: given.missing });
  return {
    tools: tools.map((tool) => tool.name),
    first: text(first),
    edited: { isError: edited.isError ?? false, text: text(edited) },
    second: text(second),
    missing: { isError: missing.isError ?? false, code: missing.structuredContent?.code },
  };
}

async function long() {
  const { tools } = await client.listTools();
  const seen = [];
  const told = await call('test_tool_with_progress', {}, { onprogress: (notice) => seen.push(notice.progress) });
  const stop = new AbortController();
  const working = call(
    'work_for_long',
    { label: given.label },
    { signal: stop.signal, onprogress: () => stop.abort('enough') },
  );
  const outcome = await working.then(() => 'answered', () => 'cancelled');
  const stopped = await call('has_stopped', { label: given.label });
  const much = await call('say_much', { characters: given.characters });
  return { tools: tools.length, told: text(told), seen, outcome, stopped: text(stopped), characters: text(much).length };
}

await client.connect(transport());
const version = client.getNegotiatedProtocolVersion?.() ?? null;
const server = client.getServerVersion()?.name ?? null;
const report = given.scenario === 'files' ? await files() : await long();
await client.close();
console.log(JSON.stringify({ ...report, version, server }));
