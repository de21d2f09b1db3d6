/** The single-file executable, built here and started without Node.js and without `node_modules`. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { createPlace, type Ended, type Environment, type Place, start } from './support/binary.js'

let executable = ''
/** With the files of the executable in its cache. */
let warm: Place

const createBare = (): Place => createPlace().with({ PATH: '/nonexistent' })
const run = (place: Place, words: readonly string[], env: Environment = {}): Promise<Ended> =>
  start(place.with(env), words, { command: executable }).ended
const cacheOf = ({ home }: Place): string => join(home, '.cache', 'rushes')

beforeAll(async () => {
  warm = createBare()
  executable = join(warm.folder, 'rushes')
  execFileSync(process.execPath, ['deploy/executable.mjs', executable], { stdio: 'ignore' })
}, 600_000)

test('concurrent first starts of the executable leave one private folder', async () => {
  const ended = await Promise.all([1, 2, 3].map(() => run(warm, ['--version'])))
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
  for (const each of ended) expect(each).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' })
  const names = readdirSync(cacheOf(warm))
  expect(names).toEqual([expect.stringMatching(`^${version}-`)])
  for (const path of [cacheOf(warm), join(cacheOf(warm), names[0] ?? '')])
    expect(statSync(path).mode & 0o777, path).toBe(0o700)
}, 240_000)

test('the executable renders with the embedded service', async () => {
  const { code, stdout } = await run(warm, ['run', 'image', '--local', 'a fox', '-o', 'fox.png'])
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'fox.png\n' })
  expect(statSync(join(warm.folder, 'fox.png')).size).toBeGreaterThan(10_000)
}, 240_000)

test('the executable serves runs and the console to another process', async () => {
  const words = ['serve', '--port', '0', '--json', '--data', join(warm.folder, 'data')]
  const service = start(warm, words, { command: executable, stdin: 'ignore' })
  const [line] = await service.prints('stdout', /^\{.*\}$/m)
  const { url, api_key: key } = JSON.parse(line)
  const { code } = await run(
    warm,
    ['run', 'image', 'a boat', '--model', 'rushes/preview-image', '-o', 'boat.png'],
    {
      ...{ RUSHES_BASE_URL: url, RUSHES_API_KEY: key },
    },
  )
  expect(code).toBe(0)
  expect(existsSync(join(warm.folder, 'boat.png'))).toBe(true)
  expect(await (await fetch(url)).text()).toContain('<title>')
  service.kill('SIGTERM')
  expect((await service.ended).code).toBe(0)
}, 240_000)

test('the executable restores extracted files that were changed or removed', async () => {
  const place = createBare()
  await run(place, ['--version'])
  const dist = join(cacheOf(place), readdirSync(cacheOf(place))[0] ?? '', 'dist')
  writeFileSync(join(dist, 'rushes.cjs'), 'throw new Error("changed")')
  expect(await run(place, ['--version'])).toMatchObject({ code: 0, stderr: '' })
  rmSync(join(dist, 'store.cjs'))
  expect((await run(place, ['--version'])).code).toBe(0)
  expect(existsSync(join(dist, 'store.cjs'))).toBe(true)
  expect(readdirSync(cacheOf(place))).toHaveLength(1)
}, 240_000)

test('the executable refuses a folder that others can change or that is not writable', async () => {
  const place = createBare()
  const open = join(place.folder, 'open')
  mkdirSync(open)
  chmodSync(open, 0o777)
  const refused = await run(place, ['--version'], { XDG_CACHE_HOME: join(open, 'cache') })
  expect(refused).toMatchObject({ code: 2, stdout: '' })
  expect(refused.stderr).toBe(
    `error: ${open}: other users can change this folder, and the program would run from it.\n` +
      '  Set XDG_CACHE_HOME to a folder that only you can write to.\n',
  )
  writeFileSync(join(place.folder, 'file'), '')
  const missing = await run(place, ['--version'], { XDG_CACHE_HOME: join(place.folder, 'file') })
  expect(missing).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('cannot be written (ENOTDIR)'),
  })
}, 240_000)
