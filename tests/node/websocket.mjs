// The WebSocket that Node has built in against Holdfast: takes {url, key, path}, prints the answers as JSON.
const { url, key, path } = JSON.parse(process.argv[2]);

const socket = new WebSocket(url, { protocols: ['mcp'], headers: { Authorization: `Bearer ${key}` } });
await new Promise((opened, failed) => {
  socket.onopen = opened;
  socket.onerror = failed;
});

const waiting = new Map();
socket.onmessage = (event) => {
  const message = JSON.parse(event.data);
  waiting.get(message.id)?.(message);
};

let last = 0;
function ask(method, params) {
  last += 1;
  const id = last;
  const answer = new Promise((answered) => waiting.set(id, answered));
  socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
  return answer;
}

const clientInfo = { name: 'node', version: '1' };
const opened = await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }));
const listed = await ask('tools/list', {});
const read = await ask('tools/call', { name: 'read_text_file', arguments: { path } });
socket.close();

console.log(
  JSON.stringify({
    protocol: socket.protocol,
    version: opened.result.protocolVersion,
    tools: listed.result.tools.map((tool) => tool.name),
    text: read.result.content[0].text,
  }),
);
