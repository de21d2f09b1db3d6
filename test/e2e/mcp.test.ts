/** `rushes mcp`, the real binary, with the SDK's client over stdio and the real local service. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, describe, expect, it } from 'vitest'
import { BINARY, createPlace, type Place, type Running, rushes, serve, start } from '../support/binary.js'
import { resultOf } from '../support/mcp.js'
import { until } from '../support/until.js'

const clients: Client[] = []
afterAll(() => Promise.all(clients.map((client) => client.close())))

const VIDEO_THAT_TAKES_LONG = ['--engine', 'video=sleep 60']

async function connect(place: Place, words: readonly string[] = []) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BINARY, 'mcp', ...words],
    cwd: place.folder,
    env: Object.fromEntries(
      Object.entries(place.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
    stderr: 'pipe',
  })
  let said = ''
  transport.stderr?.on('data', (bytes: Buffer) => {
    said += bytes.toString()
  })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport)
  await client.listTools()
  clients.push(client)
  const call = async (name: string, args: Readonly<Record<string, unknown>> = {}) =>
    resultOf((await client.callTool({ name, arguments: args })) as CallToolResult)
  return { client, call, pid: transport.pid ?? 0, stderr: () => said }
}

const PING = '{"jsonrpc":"2.0","id":9,"method":"ping"}\n'

/** A server without the SDK's client, whose streams the test closes itself. */
async function initialized(place: Place) {
  const server = start(place, ['mcp'])
  const send = (message: object) => server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const clientInfo = { name: 'x', version: '1' }
  send({
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo },
  })
  await server.says('stdout', /"id":1/)
  send({ method: 'notifications/initialized' })
  return { ...server, send }
}

const rowsOf = async (place: Place) =>
  (await rushes(place, ['list', '--json'])).stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

describe.concurrent('rushes mcp', () => {
  it('creates, waits, lists and runs a batch with --local', async () => {
    const place = createPlace()
    const { call, client, stderr } = await connect(place, ['--local'])
    const created = await call('create_image', { prompt: 'a fox', output: 'fox.png', request_id: 'fox' })
    expect(created.isError, created.text).toBe(false)
    expect(readFileSync(join(place.folder, 'fox.png')).subarray(1, 4).toString()).toBe('PNG')
    const again = await call('create_image', { prompt: 'a fox', output: 'fox.png', request_id: 'fox' })
    expect(again.structured.runs[0].id).toBe(created.structured.runs[0].id)
    const { structured } = await call('list_runs')
    expect(structured.runs).toMatchObject([{ address: 'local', request_id: 'fox', status: 'succeeded' }])
    writeFileSync(
      join(place.folder, 'shots.yaml'),
      'runs:\n  - { name: a, kind: image, prompt: a bear, output: out/a.png }\n',
    )
    const batch = await call('run_batch', { manifest: 'shots.yaml' })
    expect(batch.structured.rows).toMatchObject([
      { result: 'created', file: join(place.folder, 'out/a.png') },
    ])
    const left = await call('create_video', { prompt: 'a boat', wait: false })
    await client.close()
    await until('the last words', () => stderr().includes('is queued') || undefined)
    expect(stderr()).toContain(`rushes wait --local ${left.structured.runs[0].id}`)
  })

  it('a client that is killed during a paid run: the journal has it, and another server returns it for its request_id', async () => {
    const place = await serve(createPlace(), VIDEO_THAT_TAKES_LONG)
    const first = await connect(place)
    const args = { prompt: 'a boat', request_id: 'boat' }
    first.call('create_video', args).catch(() => {})
    const [row] = await until('the run', async () => {
      const rows = await rowsOf(place)
      return rows[0]?.id ? rows : undefined
    })
    process.kill(first.pid, 'SIGKILL')
    const second = await connect(place)
    const { structured } = await second.call('create_video', { ...args, wait: false })
    expect(structured.runs[0]).toMatchObject({ id: row.id, state: 'running' })
    expect((await rowsOf(place)).length).toBe(1)
  })

  it('four servers that get the same request_id at once pay for one run', async () => {
    const place = await serve(createPlace(), VIDEO_THAT_TAKES_LONG)
    const servers = await Promise.all([1, 2, 3, 4].map(() => connect(place)))
    const args = { prompt: 'a boat', request_id: 'boat', wait: false }
    const answers = await Promise.all(servers.map(({ call }) => call('create_video', args)))
    const [row, ...others] = await rowsOf(place)
    expect(others).toEqual([])
    for (const { isError, structured } of answers)
      if (isError) expect(['usage', 'submission_unknown']).toContain(structured.error.code)
      else expect(structured.runs[0].id).toBe(row.id)
    // Who came too early asks again, and gets the run.
    for (const { call } of servers)
      expect((await call('create_video', args)).structured.runs[0].id).toBe(row.id)
  })

  it.each([
    ['the end of its input', undefined, 0, null],
    ['SIGTERM', 'SIGTERM', null, 'SIGTERM'],
    ['SIGINT', 'SIGINT', null, 'SIGINT'],
  ] as const)(
    '%s ends it, with the ids on standard error',
    async (_, signal, code, by) => {
      const place = await serve(createPlace(), VIDEO_THAT_TAKES_LONG)
      const server = await initialized(place)
      server.stdin.write('not json\n')
      server.send({
        id: 2,
        method: 'tools/call',
        params: { name: 'create_video', arguments: { prompt: 'x', wait: false } },
      })
      const [, id] = await server.says('stdout', /"id":"(run_\w+)"/)
      if (signal === undefined) server.stdin.end()
      else server.kill(signal)
      const ended = await server.ended
      expect(ended).toMatchObject({ code, signal: by })
      expect(ended.stderr).toContain(`warning: ${id} is still running. Resume with \`rushes wait -d ${id}\`.`)
      // Standard output has protocol messages alone.
      for (const line of ended.stdout.trim().split('\n')) expect(JSON.parse(line).jsonrpc).toBe('2.0')
    },
    60_000,
  )

  it('ends when its output is closed', async () => {
    const place = await serve(createPlace())
    const server = start(place, ['mcp'])
    server.stdout.destroy()
    server.stdin.write(PING)
    expect(await server.ended).toMatchObject({ code: 141 })
  })

  it.each<[string, (server: Running) => void]>([
    [
      'the end of its input and the SIGTERM after it',
      ({ stdin, kill }) => {
        stdin.end()
        kill('SIGTERM')
      },
    ],
    [
      'a client that reads no longer',
      ({ stdin, stdout }) => {
        stdout.destroy()
        stdin.write(PING)
      },
    ],
    [
      'both',
      ({ stdin, stdout }) => {
        stdout.destroy()
        stdin.end(PING)
      },
    ],
  ])(
    '%s: the answer to a create that was sent is waited for',
    async (_, disconnect) => {
      const place = await serve(createPlace(), [...VIDEO_THAT_TAKES_LONG, '--fault', 'create:delay:3s'])
      const server = await initialized(place)
      server.send({
        id: 2,
        method: 'tools/call',
        params: { name: 'create_video', arguments: { prompt: 'x', request_id: 'boat' } },
      })
      await until('the create', async () => (await rowsOf(place)).length > 0 || undefined)
      disconnect(server)
      const { stderr } = await server.ended
      const [row, ...others] = await rowsOf(place)
      expect(others).toEqual([])
      expect(row.id, stderr).toMatch(/^run_/)
      expect(row.request_id).toBe('boat')
      expect(stderr).toContain(`warning: ${row.id} is still running.`)
    },
    60_000,
  )
})
