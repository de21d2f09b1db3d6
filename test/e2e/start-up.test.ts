/** What a command does not need, it does not load: command lines one after the other in one process, which notes its modules. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { BINARY, DIST, type Environment, listen, startNode, temporaryFolder } from '../support/index.js'

/** Each bundled package, and the service, by words that only its own code has. */
const BUNDLED: Readonly<Record<string, string>> = {
  undici: 'UND_ERR_BPL_MISSING_UPSTREAM',
  ora: 'cli-spinners',
  conf: 'Config schema violation',
  'the service': 'function createService(',
  'the OpenAPI document': 'BeforeOperations',
  'the downloader': 'function createDownloader(',
  'prom-client': 'Missing mandatory help parameter',
  'the AWS SDK': 'x-amz-content-sha256',
  'the MCP SDK': 'StdioServerTransport already started',
}
/** Packages that stay outside of the bundle. */
const OUTSIDE = ['@libsql', 'sharp'] as const

const chunks = new Map(
  readdirSync(DIST)
    .filter((name) => name.endsWith('.cjs'))
    .map((name) => [name, readFileSync(join(DIST, name), 'utf8')]),
)

function packagesIn(paths: readonly string[]): readonly string[] {
  const text = paths.map((path) => chunks.get(path.split('/dist/')[1] ?? '') ?? '').join('\n')
  return [
    ...Object.keys(BUNDLED).filter((name) => text.includes(BUNDLED[name] ?? '')),
    ...OUTSIDE.filter((name) => paths.some((path) => path.includes(`/node_modules/${name}/`))),
  ]
}

type Line = readonly [words: readonly string[], exit: number, env?: Environment, stdin?: string]

/** Calls what the program's entry calls, for one line after the other. */
const RUN_LINES = `
const { Readable, Writable } = require('node:stream')
const [main, lines] = JSON.parse(process.argv[1])
const sink = () => new Writable({ write: (_chunk, _encoding, done) => done() })
const interrupts = () => ({ first: new AbortController().signal, second: new AbortController().signal, interrupt() {} })
;(async () => {
  for (const [argv, , env = {}, input] of lines) {
    const stdin = () => Readable.from(input === undefined ? [] : [Buffer.from(input)])
    const io = { argv, env: { ...process.env, ...env }, stdin, stdout: sink(), stderr: sink(), interrupts: interrupts() }
    const code = await require(main).main(io)
    console.log(JSON.stringify({ code, paths: Object.keys(require.cache) }))
  }
  process.exit()
})()`

interface Loaded {
  readonly code: number
  /** Modules that no line before had loaded. */
  readonly paths: readonly string[]
}

async function loadedBy(lines: readonly Line[]): Promise<readonly Loaded[]> {
  const [, main = ''] = /require\("\.\/(main-[^"]+)"\)/.exec(chunks.get('rushes.cjs') ?? '') ?? []
  const { stdout, stderr } = await startNode(['-e', RUN_LINES, JSON.stringify([join(DIST, main), lines])])
    .ended
  const notes: readonly Loaded[] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(notes.length, stderr).toBe(lines.length)
  return notes.map(({ code, paths }, at) => ({
    code,
    paths: paths.filter((path) => !notes[at - 1]?.paths.includes(path)),
  }))
}

it('each marker of a loaded module occurs in one chunk of the bundle', () => {
  for (const [name, words] of Object.entries(BUNDLED)) {
    const holders = [...chunks.values()].filter((text) => text.includes(words))
    expect(holders.length, name).toBe(1)
  }
})

it('--version loads only the entry of the program', async () => {
  const script = `process.on('exit', () => process.stderr.write(Object.keys(require.cache).join('\\n')))
    process.argv.splice(1, 1, ${JSON.stringify(BINARY)}, '--version')
    require(${JSON.stringify(BINARY)})`
  const { code, stderr } = await startNode(['-e', script, 'x']).ended
  expect({ code, packages: packagesIn(stderr.split('\n')) }).toEqual({ code: 0, packages: [] })
  expect(stderr).toContain('dist/rushes.cjs')
  expect(stderr).not.toContain('dist/main-')
})

/** In this order: what one line has loaded, the next ones need not load. */
const WITHOUT_NETWORK_AND_SERVICE: readonly Line[] = [
  [['--help'], 0],
  [[], 0],
  [['run', 'image', '--help'], 0],
  [['serve', '--help'], 0],
  [['rnu'], 2],
  [['run', 'image', '--sise', '4'], 2],
  [['run', 'video', 'a fox', '--duration', '7', '--model', 'a/b'], 2],
  [['run', 'image', 'a fox', '--dry-run', '--model', 'acme/still-1'], 0],
  [['run', 'image', 'a fox'], 2],
  [['models', 'image', '--json'], 0],
  [['config', 'path'], 0],
  [['help', 'agents'], 0],
  [['mcp', '--help'], 0],
  [['completion', 'bash'], 0],
]
const MANIFEST = '[{"name": "fox", "kind": "image", "model": "acme/still-1", "prompt": "a fox"}]'

it('commands load only what they need: most no network and no service, and a plan in a pipe no widths of characters', async () => {
  // It refuses the key at once: an address at which nobody listens is tried for seven seconds.
  const port = String(await listen(createServer((_, response) => response.writeHead(401).end())))
  const key = { RUSHES_API_KEY: 'key', RUSHES_BASE_URL: `http://127.0.0.1:${port}` }
  const manifest = join(temporaryFolder(), 'shots.yaml')
  writeFileSync(manifest, MANIFEST)
  const plan: Line = [['batch', manifest, '--check'], 10]
  const others: readonly (readonly [line: Line, packages: readonly string[]])[] = [
    [plan, []],
    [
      [['login'], 4, key, 'key'],
      ['undici', '@libsql'],
    ],
    [[['status', '--local', 'run_1'], 6], ['the service']],
    [[['serve', '--port', port], 2], []],
    [[['serve', '--port', '0', '--metrics-port', port], 2], ['prom-client']],
    [[['serve', '--port', '0', '--storage', 's3://not a bucket'], 2], ['the AWS SDK']],
  ]
  const lines = [...WITHOUT_NETWORK_AND_SERVICE, ...others.map(([line]) => line)]
  const loaded = await loadedBy(lines)
  expect(loaded.map(({ code, paths }) => ({ code, packages: packagesIn(paths) }))).toEqual([
    ...WITHOUT_NETWORK_AND_SERVICE.map(([, code]) => ({ code, packages: [] })),
    ...others.map(([[, code], packages]) => ({ code, packages })),
  ])
  const upToPlan = loaded.slice(0, lines.indexOf(plan) + 1).flatMap(({ paths }) => paths)
  expect(upToPlan.filter((path) => /string-width|text-width/.test(path))).toEqual([])
})
