// One run of an official TypeScript client against Holdfast: takes JSON, prints what happened as JSON.
//   library   "client" (both eras) or "sdk" (handshake era)
//   era       "legacy", "modern" or "auto"
//   door      {kind: "stdio", command, args, env} or {kind: "http", url, key}
//   scenario  "files" with {path, missing}, "names" with {calls}, "long" with {label, characters},
//             "ask" with {labels} or "roots" with {first, second}: the URIs that it declares, one list after the other
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
const capabilities = { ask: { elicitation: { form: {} } }, roots: { roots: { listChanged: true } } }[given.scenario] ?? {};
const options = { versionNegotiation: { mode }, capabilities };
const client = new Client({ name: 'holdfast-test', version: '1' }, options);

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

async function names() {
  const { tools } = await client.listTools();
  const outcomes = [];
  for (const [name, args] of given.calls) {
    const result = await call(name, args);
    outcomes.push({ isError: result.isError ?? false, code: result.structuredContent?.code ?? null });
  }
  return { tools: tools.map((tool) => tool.name), outcomes };
}

// The person says what the label of the call asks for; "wait" is left open until the question is withdrawn.
async function ask() {
  const asked = [];
  let withdrawn = 0;
  const answer = async ({ params }, context) => {
    asked.push(params.message);
    const signal = context.signal ?? context.mcpReq.signal;
    const action = /\((\w+)/.exec(params.message)[1];
    if (action === 'accept') return { action, content: { decision: 'approve', comment: 'natürlich' } };
    if (action !== 'wait') return { action };
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    withdrawn += 1;
    return { action: 'cancel' };
  };
  if (given.library === 'sdk') {
    const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
    client.setRequestHandler(ElicitRequestSchema, answer);
  } else {
    client.setRequestHandler('elicitation/create', answer);
  }
  await client.connect(transport());
  await client.listTools();
  const texts = [];
  for (const label of given.labels) {
    texts.push(text(await call('ask_person', { label, patience: label.startsWith('wait') ? 0.3 : 30 })));
  }
  return { texts, asked, withdrawn };
}

// The client declares its roots, then others; what may be used is asked after each.
async function roots() {
  let declared = given.first;
  const answer = async () => ({ roots: declared.map((uri) => ({ uri })) });
  if (given.library === 'sdk') {
    const { ListRootsRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
    client.setRequestHandler(ListRootsRequestSchema, answer);
  } else {
    client.setRequestHandler('roots/list', answer);
  }
  await client.connect(transport());
  const first = text(await call('list_allowed_directories', {}));
  declared = given.second;
  await client.sendRootsListChanged();
  const second = text(await call('list_allowed_directories', {}));
  return { first, second };
}

if (!['ask', 'roots'].includes(given.scenario)) await client.connect(transport());
const report = await { files, names, long, ask, roots }[given.scenario]();
const version = client.getNegotiatedProtocolVersion?.() ?? null;
const server = client.getServerVersion()?.name ?? null;
await client.close();
console.log(JSON.stringify({ ...report, version, server }));
