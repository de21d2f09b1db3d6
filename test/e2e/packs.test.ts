/** What V8 made of the program is kept in the user's cache folder, and nothing depends on it. */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createPlace, filesBelow, type Place, rushes, serve } from '../support/binary.js'

/** A person whose cache is their own: the other tests share one. */
const createPerson = (env: Record<string, string> = {}): Place =>
  createPlace().with({ NODE_COMPILE_CACHE: undefined, XDG_CACHE_HOME: undefined, ...env })

const folderOf = ({ home }: Place): string =>
  join(home, '.cache', 'rushes', `${process.version}-${process.arch}`)

/** Each file that is kept, by its name without the build, with what tells whether it was written again. */
const keptBy = (place: Place) =>
  new Map(
    (existsSync(folderOf(place)) ? readdirSync(folderOf(place)) : []).map((name) => {
      const { ino, mode } = statSync(join(folderOf(place), name))
      return [name.replace(/-.*\.cjs/, ''), { name, ino, mode: mode & 0o777 }]
    }),
  )

async function models(place: Place): Promise<void> {
  const { code, stdout, stderr } = await rushes(place, ['models', 'image'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('image\t--prompt')
}

describe.concurrent('what V8 made of the program', () => {
  it('is kept by the first command that does something, for the user alone, and read by the next', async () => {
    const place = createPerson()
    expect((await rushes(place, ['--version'])).code).toBe(0)
    expect(filesBelow(place.home)).toEqual([])
    await models(place)
    const first = keptBy(place)
    expect([...first.keys()]).toEqual(['core.models'])
    expect(first.get('core.models')?.mode).toBe(0o600)
    expect(statSync(folderOf(place)).mode & 0o777).toBe(0o700)
    await models(place)
    expect(keptBy(place)).toEqual(first)
  })

  it('is kept for each command, and for help, and not for what was mistyped', async () => {
    const place = createPerson()
    await models(place)
    await rushes(place, ['run', 'image', '--help'])
    for (const word of ['../../no-command', 'modles']) await rushes(place, [word])
    await rushes(place, [])
    expect([...keptBy(place).keys()].sort()).toEqual(['core.help', 'core.models', 'core.none'])
  })

  it('fits a process that told V8 to compile WebAssembly in another way meanwhile', async () => {
    const { env } = await serve(createPlace())
    const [url, key] = [env.RUSHES_BASE_URL ?? '', env.RUSHES_API_KEY ?? '']
    const place = createPerson({ RUSHES_BASE_URL: url, RUSHES_API_KEY: key })
    const status = () => rushes(place, ['status', 'run_none'])
    expect((await status()).code).toBe(6)
    const first = keptBy(place)
    expect([...first.keys()].sort()).toEqual(['core.status', 'network.status', 'state.status'])
    expect((await status()).code).toBe(6)
    expect(keptBy(place)).toEqual(first)
  })

  it('fits what is loaded after the first answer', async () => {
    const { env } = await serve(createPlace())
    const place = createPerson({
      RUSHES_BASE_URL: env.RUSHES_BASE_URL ?? '',
      RUSHES_API_KEY: env.RUSHES_API_KEY ?? '',
    })
    const run = () =>
      rushes(place, [
        'run',
        'image',
        'a fox',
        '--model',
        'rushes/preview-image',
        '-o',
        'fox.png',
        '--overwrite',
      ])
    expect((await run()).code).toBe(0)
    const first = keptBy(place)
    expect([...first.keys()]).toContain('kinds.run')
    expect((await run()).code).toBe(0)
    expect(keptBy(place)).toEqual(first)
  })

  it('loads more of Node later on, whether it was kept or not', async () => {
    const nowhere = { RUSHES_BASE_URL: 'http://127.0.0.1:9', RUSHES_API_KEY_COMMAND: 'echo key-of-a-command' }
    const place = createPerson(nowhere)
    const [first, second] = [await rushes(place, ['status', 'x']), await rushes(place, ['status', 'x'])]
    expect(first.stderr).toMatch(
      /^error: run x: 127\.0\.0\.1:9 could not be reached: the connection was refused\n {2}/,
    )
    expect(second).toEqual(first)
  })

  it.each([
    ['is no code at all', (whole: Buffer) => Buffer.from('x'.repeat(whole.length))],
    ['is cut off', (whole: Buffer) => whole.subarray(0, whole.length >> 1)],
    ['is empty', () => Buffer.alloc(0)],
    // V8 runs into it, and the process dies of a signal.
    ['has lost a block', (whole: Buffer) => Buffer.from(whole).fill(0, 49_152, 53_248)],
    ['has another bit', (whole: Buffer) => Buffer.from(whole).fill((whole[49_500] ?? 0) ^ 1, 49_500, 49_501)],
  ])('is made again where it %s', async (_, spoil) => {
    const place = createPerson()
    await models(place)
    const name = keptBy(place).get('core.models')?.name ?? ''
    const path = join(folderOf(place), name)
    const whole = readFileSync(path)
    writeFileSync(path, spoil(whole))
    await models(place)
    const again = readFileSync(path)
    expect(again.length).toBeGreaterThan(whole.length / 2)
    expect(again.subarray(49_152, 53_248).every((byte) => byte === 0)).toBe(false)
    expect(readdirSync(folderOf(place))).toEqual([name])
  })

  it('goes after 90 days, with what a process that was killed left', async () => {
    const place = createPerson()
    await models(place)
    const old = join(folderOf(place), 'core-00000000.cjs.models.4711')
    const recent = join(folderOf(place), 'core-11111111.cjs.models')
    for (const file of [old, recent]) writeFileSync(file, '')
    const days = (count: number) => Date.now() / 1_000 - count * 86_400
    utimesSync(old, days(91), days(91))
    utimesSync(recent, days(89), days(89))
    await rushes(place, ['run', '--help'])
    expect([existsSync(old), existsSync(recent)]).toEqual([false, true])
  })

  it.each([
    ['NODE_DISABLE_COMPILE_CACHE', { NODE_DISABLE_COMPILE_CACHE: '1' }],
    ['flags of Node', { NODE_OPTIONS: '--max-old-space-size=512' }],
  ])('is not kept with %s', async (_, env) => {
    const place = createPerson(env)
    await models(place)
    expect(filesBelow(place.home)).toEqual([])
  })

  it('is kept where the variables say', async () => {
    const place = createPerson({ XDG_CACHE_HOME: join(createPlace().home, 'c') })
    await models(place)
    expect(filesBelow(place.home)).toEqual([])
    expect(filesBelow(place.env.XDG_CACHE_HOME ?? '')[0]).toMatch(/^rushes\/v.*core-.*\.models$/)
  })

  it.skipIf(process.getuid?.() !== 0)('is not read where it is not of the user who starts it', async () => {
    const place = createPerson()
    await models(place)
    const path = join(folderOf(place), keptBy(place).get('core.models')?.name ?? '')
    chownSync(path, 65_534, 65_534)
    await models(place)
    expect(statSync(path).uid).toBe(0)
    chownSync(folderOf(place), 65_534, 65_534)
    await rushes(place, ['--help'])
    expect([...keptBy(place).keys()]).toEqual(['core.models'])
  })

  it.each([
    ['HOME', { HOME: '' }],
    ['HOME', { HOME: 'here' }],
    ['NODE_COMPILE_CACHE', { NODE_COMPILE_CACHE: 'here' }],
  ])('is never looked for where the user happens to be: %s', async (_, env) => {
    const place = createPerson().with(env)
    await models(place)
    // What Node 22 itself keeps by that variable is its own affair.
    expect(filesBelow(place.folder).filter((path) => path.includes('.cjs.'))).toEqual([])
  })

  it('is not missed where the folder is a file, or nobody can write there', async () => {
    const file = createPerson()
    writeFileSync(join(file.home, '.cache'), '')
    await models(file)
    const locked = createPerson()
    mkdirSync(join(locked.home, '.cache'))
    chmodSync(join(locked.home, '.cache'), 0o500)
    await models(locked)
  })
})
