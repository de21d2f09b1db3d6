/** `rushes mcp`, the real binary, with the SDK's client over stdio and the real local service: processes that end. Tools: test/cli/mcp.test.ts. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  BINARY,
  type Place,
  personAt,
  rowsOf,
  type Service,
  serveQuickly,
  start,
  until,
} from '../support/index.js'
import { resultOf } from '../support/mcp.js'

const clients: Client[] = []
afterAll(() => Promise.all(clients.map((client) => client.close())))

let service: Service
beforeAll(async () => {
  service = await serveQuickly()
})

async function connect(place: Place) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BINARY, 'mcp'],
    cwd: place.folder,
    env: Object.fromEntries(
      Object.entries(place.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
    stderr: 'ignore',
  })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport)
  await client.listTools()
  clients.push(client)
  const call = async (name: string, args: Readonly<Record<string, unknown>> = {}) =>
    resultOf((await client.callTool({ name, arguments: args })) as CallToolResult)
  return { call, pid: transport.pid ?? 0 }
}

/** A server without the SDK's client, whose streams the test closes itself. It has been asked for a video. */
async function askedForVideo(place: Place) {
  const server = start(place, ['mcp'])
  const send = (message: object) => server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const clientInfo = { name: 'x', version: '1' }
  send({
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo },
  })
  await server.prints('stdout', /"id":1/)
  send({ method: 'notifications/initialized' })
  server.stdin.write('not json\n')
  send({
    id: 2,
    method: 'tools/call',
    params: { name: 'create_video', arguments: { prompt: 'x', wait: false } },
  })
  return server
}

it.concurrent('rushes mcp pays for one run of a request_id when its server is killed, and when two servers get it at once', async () => {
  const place = await personAt(service)
  const args = { prompt: 'a boat', request_id: 'boat' }
  const first = await connect(place)
  first.call('create_video', args).catch(() => {})
  const row = await until('the run', () => rowsOf(place.home).find(({ id }) => id !== undefined))
  process.kill(first.pid, 'SIGKILL')
  const servers = await Promise.all([connect(place), connect(place)])
  const callBoth = (args: Readonly<Record<string, unknown>>) =>
    Promise.all(servers.map(({ call }) => call('create_video', { ...args, wait: false })))
  for (const { run } of await callBoth(args)) expect(run).toMatchObject({ id: row.id, output: null })
  expect(rowsOf(place.home)).toHaveLength(1)

  const other = { prompt: 'a lake', request_id: 'lake' }
  const answers = await callBoth(other)
  const [lake, ...older] = rowsOf(place.home)
  expect(older).toMatchObject([{ id: row.id }])
  for (const { isError, run, error } of answers)
    if (isError) expect(['usage', 'submission_unknown']).toContain(error.code)
    else expect(run.id).toBe(lake?.id)
  // Who came too early asks again, and gets the run.
  for (const { run } of await callBoth(other)) expect(run.id).toBe(lake?.id)
})

it.concurrent('rushes mcp ends on SIGTERM with the ids of running runs on standard error', async () => {
  const server = await askedForVideo(await personAt(service))
  const [, id] = await server.prints('stdout', /"id":"(run_\w+)"/)
  server.kill('SIGTERM')
  const ended = await server.ended
  expect(ended).toMatchObject({ code: null, signal: 'SIGTERM' })
  expect(ended.stderr).toMatch(
    new RegExp(`${id} is still running\\.\\s+Resume with .rushes wait -o \\S+ ${id}`),
  )
  // Standard output has only protocol messages.
  for (const line of ended.stdout.trim().split('\n')) expect(JSON.parse(line).jsonrpc).toBe('2.0')
})

it.concurrent('rushes mcp ends when its output is closed', async () => {
  const server = start(await personAt(service), ['mcp'])
  server.stdout.destroy()
  server.stdin.write('{"jsonrpc":"2.0","id":9,"method":"ping"}\n')
  expect(await server.ended).toMatchObject({ code: 141 })
})
