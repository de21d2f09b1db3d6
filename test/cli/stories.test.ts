/**
 * Manifests that are edited between batches: what each step pays, and one oracle after each step: each file lies where
 * the lock file says, with the bytes of a run of its own prompt; `--check` is 0; a repeat pays nothing.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createFamily, type Row, sha256 } from '../support/family.js'

/** `a=A@x.png<b`: row a, prompt A, output x.png, uses row b. A step that is a word removes a file. */
type Step = readonly [manifest: string, paid: string] | string

const STORIES: readonly (readonly [string, ...Step[]])[] = [
  ['a repeat pays nothing', ['a=A b=B', 'AB'], ['a=A b=B', '']],
  ['swap their outputs', ['a=A b=B', 'AB'], ['a=A@b.png b=B@a.png', '']],
  ['swap their prompts', ['a=A b=B', 'AB'], ['a=B b=A', '']],
  ['rename a row', ['a=A b=B', 'AB'], ['x=A b=B', '']],
  ['rename and give the old name to a new prompt', ['a=A', 'A'], ['x=A a=B', 'B']],
  ['a becomes B, d is B, c stays', ['a=A b=B c=A', 'AAB'], ['a=B d=B c=A', 'B'], ['a=B d=B c=A e=A', 'A']],
  ['three in a ring', ['a=A b=B c=C', 'ABC'], ['a=B b=C c=A', '']],
  ['equal prompts are made one by one', ['a=A b=A', 'AA'], ['a=A b=A c=A', 'A']],
  ['a file is removed', ['a=A b=B', 'AB'], 'a.png', ['a=A b=B', '']],
  ['a file is removed and its row renamed', ['a=A', 'A'], 'a.png', ['x=A', '']],
  ['a source changes', ['a=A b=B<a', 'AB'], ['a=C b=B<a', 'BC']],
  ['a source is renamed', ['a=A b=B<a', 'AB'], ['x=A b=B<x', '']],
  ['a user is renamed', ['a=A b=B<a', 'AB'], ['a=A x=B<a', '']],
  ['source and user are renamed', ['a=A b=B<a', 'AB'], ['x=A y=B<x', '']],
  ['a chain moves to other outputs', ['a=A b=B<a', 'AB'], ['a=A@q/a.png b=B@q/b.png<a', '']],
  ['users swap their outputs', ['a=A b=B<a c=C<a', 'ABC'], ['a=A b=B@c.png<a c=C@b.png<a', '']],
]

const PNG = Buffer.from('89504e470d0a1a0a0000000d4948445200000001000000010806000000', 'hex')

/** Each run has bytes of its own, which begin with its prompt. */
function createEngine() {
  let runs = 0
  return {
    async render({
      folder,
      input,
    }: {
      readonly folder: string
      readonly input: { readonly prompt?: unknown }
    }) {
      const text = `${input.prompt} ${++runs}`.padEnd(20)
      await writeFile(join(folder, 'file'), Buffer.concat([PNG, Buffer.from(text)]))
      return [{ name: 'file', contentType: 'image/png' }]
    },
  }
}

const rowsOf = (manifest: string) =>
  manifest.split(' ').map((word) => {
    const [, name = '', prompt = '', output = `${name}.png`, source] =
      /^(\w+)=(\w+)(?:@([\w/.]+))?(?:<(\w+))?$/.exec(word) ?? []
    return { name, prompt, output, ...(source !== undefined && { image_urls: [`row:${source}`] }) }
  })

it.each(STORIES)('%s', async (_, ...steps) => {
  const family = await createFamily([], { engine: createEngine() })
  const paid = () => family.created().sort().join('')
  for (const step of steps as readonly Step[]) {
    if (typeof step === 'string') {
      rmSync(family.path(step))
      continue
    }
    const [manifest, pays] = step
    const rows = rowsOf(manifest)
    family.write(rows as readonly Row[])
    const { code, stderr } = await family.run()
    expect({ code, paid: paid(), stderr }).toEqual({ code: 0, paid: pays, stderr })
    const lock = family.lock()
    for (const { name, prompt, output } of rows) {
      expect(lock[name]).toMatchObject({ file: output, sha256: sha256(family.path(output)) })
      expect(readFileSync(family.path(output)).subarray(PNG.length).toString()).toMatch(
        new RegExp(`^${prompt} `),
      )
    }
    expect(new Set(rows.map(({ name }) => lock[name].run)).size).toBe(rows.length)
    expect(readdirSync(family.folder).filter((name) => name.startsWith('.'))).toEqual([])
    expect((await family.run(['--check'])).code).toBe(0)
    expect({ code: (await family.run()).code, paid: paid() }).toEqual({ code: 0, paid: '' })
  }
})

it('a removed lock file pays for nothing: the files are in the way', async () => {
  const family = await createFamily([], { engine: createEngine() })
  family.write(rowsOf('a=A') as readonly Row[])
  await family.run()
  rmSync(family.lockPath)
  family.created()
  expect([(await family.run()).code, family.created()]).toEqual([2, []])
})

it('a row without a result is not created by another state folder while the lock file says that a batch works', async () => {
  const family = await createFamily([{ name: 'a', prompt: 'A' }], { rendering: false })
  expect((await family.run(['--timeout', '30s'])).code).toBe(11)
  family.created()
  const elsewhere = { env: { RUSHES_STATE_DIR: join(family.folder, 'other') } }
  const { code, stderr } = await family.run([], elsewhere)
  expect([code, family.created()]).toEqual([13, []])
  expect(stderr).toMatch(/a/)
  family.service.service.startRendering()
  expect([(await family.run()).code, family.created()]).toEqual([0, []])
  expect(JSON.parse(readFileSync(family.lockPath, 'utf8')).working).toBeUndefined()
})

it('the lock file says that a batch works while a run is in flight that a renamed row follows', async () => {
  const family = await createFamily([{ name: 'a', prompt: 'A' }], { rendering: false })
  expect((await family.run(['--timeout', '30s'])).code).toBe(11)
  family.write([{ name: 'x', prompt: 'A' }])
  family.created()
  expect([(await family.run(['--timeout', '30s'])).code, family.created()]).toEqual([11, []])
  expect(JSON.parse(readFileSync(family.lockPath, 'utf8')).working).toBeDefined()
  const elsewhere = { env: { RUSHES_STATE_DIR: join(family.folder, 'other') } }
  expect([(await family.run([], elsewhere)).code, family.created()]).toEqual([13, []])
})

it('what a killed write of the lock file has left is removed, also where all is up to date', async () => {
  const family = await createFamily(rowsOf('a=A') as readonly Row[], { engine: createEngine() })
  await family.run()
  await writeFile(family.path('.shots.lock.json.0123456789ab.part'), '{}')
  expect((await family.run()).code).toBe(0)
  expect(readdirSync(family.folder).filter((name) => name.startsWith('.'))).toEqual([])
})

describe('runs in flight in another state folder', () => {
  /** Row c is made. Rows a and b are in flight, and are not rendered before `release`. */
  async function inFlight() {
    const engine = createEngine()
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const held = {
      async render(job: Parameters<typeof engine.render>[0]) {
        if (job.input.prompt !== 'C') await released
        return engine.render(job)
      },
    }
    const family = await createFamily(rowsOf('c=C a=A b=B') as readonly Row[], { engine: held })
    expect((await family.run(['--only', 'c'])).code).toBe(0)
    expect((await family.run(['--timeout', '30s'])).code).toBe(11)
    release()
    family.created()
    const elsewhere = { env: { RUSHES_STATE_DIR: join(family.folder, 'other') } }
    return { ...family, there: (...words: readonly string[]) => family.run(words, elsewhere) }
  }

  it.each([
    ['that is up to date', ['--only', 'c'], 0, []],
    ['that is sent again', ['--only', 'a', '--resubmit-unconfirmed'], 0, ['A']],
    ['that is forced', ['--only', 'c', '--force'], 0, ['C']],
  ])('are not paid again after a batch of a row %s', async (_, words, code, paid) => {
    const { there, created } = await inFlight()
    expect([(await there(...words)).code, created()]).toEqual([code, paid])
    expect([(await there()).code, created()]).toEqual([13, []])
  })
})
