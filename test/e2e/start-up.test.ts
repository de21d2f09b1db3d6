/** What a command does not need, it does not load: held by the list of the modules that were loaded. */
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { createPlace, DIST, type Environment, rushes } from '../support/binary.js'

const PRELOAD = fileURLToPath(new URL('./loaded-modules.mjs', import.meta.url))

/** Each bundled package, and the service, by words that only its own code has. */
const BUNDLED: Readonly<Record<string, string>> = {
  undici: 'UND_ERR_BPL_MISSING_UPSTREAM',
  ora: 'cli-spinners',
  conf: 'Config schema violation',
  'the service': 'function createService(',
  'the OpenAPI document': 'BeforeOperations',
  'the downloader': 'function createDownloader(',
  'prom-client': 'Missing mandatory help parameter',
  iovalkey: 'Redis is already connecting/connected',
  'the AWS SDK': 'x-amz-content-sha256',
  'the MCP SDK': 'StdioServerTransport already started',
}
/** Packages that stay outside of the bundle. */
const OUTSIDE = ['@libsql', 'sharp'] as const

const chunks = new Map<string, string>()
beforeAll(() => {
  for (const name of readdirSync(DIST).filter((each) => each.endsWith('.cjs')))
    chunks.set(name, readFileSync(join(DIST, name), 'utf8'))
})

interface Loaded {
  readonly code: number | null
  readonly own: readonly string[]
  readonly packages: readonly string[]
}

async function loadedBy(words: readonly string[], env: Environment = {}, stdin = ''): Promise<Loaded> {
  const place = createPlace()
  const list = join(place.home, 'modules')
  const { code } = await rushes(
    place.with({ ...env, LOADED_MODULES: list, NODE_OPTIONS: `--import=${PRELOAD}` }),
    words,
    stdin === '' ? {} : { stdin },
  )
  const urls = readFileSync(list, 'utf8').trim().split('\n')
  const own = urls.flatMap((url) => /\/dist\/([^/]+\.cjs)$/.exec(url)?.slice(1) ?? [])
  const text = own.map((name) => chunks.get(name) ?? '').join('\n')
  return {
    code,
    own,
    packages: [
      ...Object.keys(BUNDLED).filter((name) => text.includes(BUNDLED[name] ?? '')),
      ...OUTSIDE.filter((name) => urls.some((url) => url.includes(`/node_modules/${name}/`))),
    ],
  }
}

describe.concurrent('what is loaded', () => {
  it('is told by words that the bundle has, each in one chunk', () => {
    for (const [name, words] of Object.entries(BUNDLED)) {
      const holders = [...chunks.values()].filter((text) => text.includes(words))
      expect(holders.length, name).toBe(1)
    }
  })

  it.each([
    ['--version', ['--version'], 0],
    ['--help', ['--help'], 0],
    ['nothing', [], 0],
    ['run image --help', ['run', 'image', '--help'], 0],
    ['serve --help', ['serve', '--help'], 0],
    ['an unknown command', ['rnu'], 2],
    ['an unknown flag', ['run', 'image', '--sise', '4'], 2],
    ['a value outside of the schema', ['run', 'video', 'a fox', '--duration', '7', '--model', 'a/b'], 2],
    ['--dry-run', ['run', 'image', 'a fox', '--dry-run', '--model', 'acme/still-1'], 0],
    ['no address', ['run', 'image', 'a fox'], 2],
    ['models', ['models', 'image', '--json'], 0],
    ['config path', ['config', 'path'], 0],
    ['help exit-codes', ['help', 'exit-codes'], 0],
    ['mcp --help', ['mcp', '--help'], 0],
    ['completion bash', ['completion', 'bash'], 0],
    ['completion of a flag', ['__complete', 'run', 'image', '--qua'], 0],
    ['completion of an id, without a journal', ['__complete', 'wait', ''], 0],
  ])('%s loads neither the network nor the service', async (_, words, code) => {
    const loaded = await loadedBy(words)
    expect(loaded.own).toContain('rushes.cjs')
    expect(loaded).toMatchObject({ code, packages: [] })
  })

  it('is seen: a command that needs the network loads it and nothing of the service; --local loads both', async () => {
    const key = { RUSHES_API_KEY: 'key', RUSHES_BASE_URL: 'http://127.0.0.1:9' }
    const remote = await loadedBy(['login'], key, 'key')
    expect(remote).toMatchObject({ code: 9, packages: ['undici', '@libsql'] })
    const shared = await loadedBy(['login'], { ...key, RUSHES_LIMITS_URL: 'redis://127.0.0.1:9' }, 'key')
    expect(shared).toMatchObject({ code: 9, packages: ['undici', 'iovalkey', '@libsql'] })
    const local = await loadedBy(['status', '--local', 'run_1'], { RUSHES_LIMITS_URL: 'redis://127.0.0.1:9' })
    expect(local.packages).toEqual(['undici', 'the service', '@libsql'])
  })

  it('serve loads the AWS SDK only with --storage', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const without = await loadedBy(['serve', '--port', String(port)])
    taken.close()
    const storage = await loadedBy(['serve', '--port', '0', '--storage', 's3://not a bucket'])
    expect([without.code, storage.code]).toEqual([2, 2])
    expect(without.packages).not.toContain('the AWS SDK')
    expect(storage.packages).toContain('the AWS SDK')
  })

  it('serve loads the metrics only with --metrics-port', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const without = await loadedBy(['serve', '--port', String(port)])
    const metrics = await loadedBy(['serve', '--port', '0', '--metrics-port', String(port)])
    taken.close()
    expect(without.code).toBe(2)
    expect(without.packages).not.toContain('prom-client')
    expect(metrics.code).toBe(2)
    expect(metrics.packages).toContain('prom-client')
  })
})
