/** Rows that use other rows: how they are read, in what order they come, and what the plan says of random graphs of them. */
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Lock, type Made, newLock, outputsOf } from '../../src/batch/lock/lock.js'
import { levelsOf, type Manifest, type ManifestEntry } from '../../src/batch/manifest/entry.js'
import { identitiesOf, makePlan } from '../../src/batch/plan/index.js'
import type { Flight } from '../../src/batch/plan/pair.js'
import { identityOf } from '../../src/protocol/identity.js'
import { expectLinear } from '../support/growth.js'
import { ONE_PIXEL_PNG } from '../support/index.js'
import { entriesOf, folderWith, madeOf, problemsOf, read } from './folder.js'

const referencesOf = ({ references }: ManifestEntry) =>
  references.map((each) => (each.from === 'row' ? [each.source, each.output] : each.from))

describe('a reference to a row', () => {
  it.each([
    [
      'shots.yaml',
      `- {name: b, kind: image, prompt: x, image_urls: ["https://a.example/x.png", "row:a", "row:a#2"]}
- {name: a, kind: image, prompt: x}`,
    ],
    [
      'shots.csv',
      'name,kind,prompt,image_urls\nb,image,x,https://a.example/x.png row:a row:a#2\na,image,x,\n',
    ],
  ])('is read from %s', async (name, text) => {
    const [b] = await entriesOf(text, { name })
    expect(b && referencesOf(b)).toEqual(['url', ['a', 1], ['a', 2]])
  })

  it('can name each run of a row, a row without a name by its output, and a name with #', async () => {
    const entries = await entriesOf(`
- {name: hero, kind: image, prompt: x, count: 3}
- {output: icons/fox.png, kind: image, prompt: x}
- {name: "take #2", kind: image, prompt: x}
- {name: all, kind: image, prompt: x, image_urls: ["row:hero-3", "row:icons/fox.png", "row:take #2", "row:take #2#3"]}`)
    const last = entries.at(-1)
    expect(last && referencesOf(last)).toEqual([
      ['hero-3', 1],
      ['icons/fox.png', 1],
      ['take #2', 1],
      ['take #2', 3],
    ])
  })

  it.each<[string, string, readonly string[]]>([
    [
      'an unknown name, with the nearest one',
      `- {name: hero, kind: image, prompt: x}
- name: pose
  kind: image
  prompt: x
  image_urls:
    - https://a.example/x.png
    - row:hreo`,
      ['7 image_urls: "row:hreo": the manifest has no run named "hreo". Did you mean "row:hero"?'],
    ],
    [
      'no name',
      '- {name: a, kind: image, prompt: x, image_urls: ["row:"]}',
      ['1 image_urls: "row:" needs the name of a run: row:hero'],
    ],
    [
      'the output #0',
      '- {name: a, kind: image, prompt: x, image_urls: ["row:b#0"]}\n- {name: b, kind: image, prompt: x}',
      ['1 image_urls: "row:b#0": the number after # must be a whole number, counted from 1'],
    ],
    [
      'a video',
      `- {name: clip, kind: video, prompt: x}
- {name: b, kind: image, prompt: x, image_urls: ["row:clip"]}`,
      ['2 image_urls: "row:clip" is a video, not an image'],
    ],
    [
      'itself',
      '- {name: a, kind: image, prompt: x, image_urls: ["row:a"]}',
      ['1 these runs use each other in a cycle: a → a'],
    ],
    [
      'a longer cycle, beside rows that are not in it, once',
      `- {name: in, kind: image, prompt: x, image_urls: ["row:a"]}
- {name: a, kind: image, prompt: x, image_urls: ["row:b", "row:out"]}
- {name: b, kind: image, prompt: x, image_urls: ["row:c", "row:out"]}
- {name: c, kind: image, prompt: x, image_urls: ["row:out", "row:a", "row:b"]}
- {name: out, kind: image, prompt: x}`,
      ['4 these runs use each other in a cycle: a → b → c → a'],
    ],
  ])('cannot be %s', async (_, text, problems) => {
    expect(await problemsOf(text)).toEqual(problems)
  })

  it('of the defaults can be left out by a row', async () => {
    const text = `
defaults: {kind: image, image_urls: ["row:style"]}
runs:
  - {name: style, prompt: x, image_urls: null}
  - {name: a, prompt: x}`
    expect((await entriesOf(text)).map(referencesOf)).toEqual([[], [['style', 1]]])
  })
})

describe('a plan', () => {
  const FLAGS = { force: false, forcePending: false, overwrite: true, resubmitUnconfirmed: false }

  const sources = ({ references }: ManifestEntry) =>
    references.flatMap((each) => (each.from === 'row' ? [each.source] : []))

  /** As if a batch had created everything. */
  function lockOf(entries: readonly ManifestEntry[]): Lock {
    const made = new Map<string, Made>()
    const nodes = entries.map((entry) => ({ name: entry.name, sources: sources(entry), entry }))
    for (const { name, entry } of levelsOf(nodes).flat()) {
      const [found] = identitiesOf(entry, (source) => outputsOf(made.get(source)))
      const hash = identityOf('acme/still-1', found)
      made.set(name, madeOf(hash, { run: `run_${name}`, sha256: identityOf('', hash), file: `${name}.png` }))
    }
    return { ...newLock(), entries: made }
  }

  interface Given {
    /** The names that `--only` selects. */
    readonly only?: readonly string[]
    readonly flags?: typeof FLAGS
    readonly flights?: readonly Flight[]
  }

  const plan = (manifest: Manifest, lock: Lock, { only, flags = FLAGS, flights = [] }: Given = {}) =>
    makePlan({
      manifest,
      lock,
      flags,
      flights,
      isElsewhere: false,
      models: { image: 'acme/still-1' },
      allowOutside: false,
      selects: ({ name }) => only?.includes(name) ?? true,
    })

  /** Reads a manifest whose rows r0, r1, … use rows before them. The prompts of some are edited. */
  async function manifestOf(
    folder: string,
    rows: readonly (readonly number[])[],
    edited: readonly number[] = [],
  ): Promise<Manifest> {
    const text = rows.map((uses, at) =>
      JSON.stringify({
        name: `r${at}`,
        kind: 'image',
        prompt: `${at}${edited.includes(at) ? ' edited' : ''}`,
        ...(at > 0 &&
          uses.length > 0 && { image_urls: [...new Set(uses.map((each) => `row:r${each % at}`))] }),
      }),
    )
    const result = await read(text.join('\n'), { name: 'shots.jsonl', folder })
    return result.ok ? result.manifest : expect.unreachable(JSON.stringify(result.problems))
  }

  it('creates exactly what was edited and what depends on it; the others are downloaded', async () => {
    const folder = folderWith()
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.nat(1_000), { maxLength: 3 }), { minLength: 1, maxLength: 25 }),
        fc.array(fc.nat(24), { maxLength: 3 }),
        fc.nat(24),
        async (rows, edited, picked) => {
          const lock = lockOf((await manifestOf(folder, rows)).entries)
          const changed = await manifestOf(folder, rows, edited)
          const { steps, counts } = await plan(changed, lock)
          const affected = new Set<string>()
          for (const { entry } of steps)
            if (
              /edited/.test(String(entry.input.prompt)) ||
              sources(entry).some((each) => affected.has(each))
            )
              affected.add(entry.name)
          for (const { entry, action } of steps)
            expect(action.do).toBe(affected.has(entry.name) ? 'create' : 'download')
          expect(counts.create).toBe(affected.size)
          // With --only nothing is decided otherwise than without.
          const only = await plan(changed, lock, { only: [`r${picked % rows.length}`] })
          for (const [at, { action }] of only.steps.entries())
            if (action.do !== 'skip') expect(action).toEqual(steps[at]?.action)
        },
      ),
      { numRuns: 60 },
    )
  })

  it('lets a row wait for a run under way that it uses, which --force of that row does not create again', async () => {
    const folder = folderWith()
    const lock = lockOf((await manifestOf(folder, [[], [0]])).entries)
    const edited = await manifestOf(folder, [[], [0]], [0])
    const { hash, model, kind } = lockOf(edited.entries).entries.get('r0') as Made
    const flight = {
      name: 'r0',
      hash,
      model,
      kind,
      run: 'run_new',
      key: undefined,
      row: 1,
      address: undefined,
      urls: [],
      files: [],
    }
    const unfinished = { do: 'download', why: 'unfinished', run: 'run_new', at: 0 }
    const { steps } = await plan(edited, lock, { flights: [flight] })
    expect(steps.map(({ action }) => action)).toEqual([unfinished, { do: 'create', why: 'out_of_date' }])
    expect(steps[1]?.waitsFor).toEqual(['r0'])
    const flags = { ...FLAGS, force: true, forcePending: true }
    const forced = await plan(edited, lock, { only: ['r1'], flags, flights: [flight] })
    expect(forced.steps.map(({ action }) => action)).toEqual([unfinished, { do: 'create', why: 'forced' }])
  })

  // `npm run bench -- plan` measures how long it takes.
  it('of 2,000 rows, of which 1,600 are one chain, is made in linear time', async () => {
    const folder = folderWith()
    await expectLinear(2_000, async (count) => {
      const rows = Array.from({ length: count }, (_, at) => (at < count / 5 ? [] : [at - 1]))
      const { counts } = await plan(await manifestOf(folder, rows), newLock())
      expect(counts.create).toBe(count)
    })
  })
})

describe('a local image that is the output of a row', () => {
  const A = '{ name: a, kind: image, prompt: a, output: out/a.png }'
  const problems = (first: string, path: string, folder = folderWith()) =>
    problemsOf(`- ${first}\n- { name: b, kind: image, prompt: b, image_urls: ["${path}"] }\n`, { folder })
  const write = (path: string, name: string) => [
    `2 image_urls: "${path}" is the output of another run: write row:${name}`,
  ]

  it.each([['out/a.png'], ['./out/../out/a.png'], ['OUT/A.png']])(
    'as %s is an error that says what to write, whether the file exists or not',
    async (path) => {
      expect(await problems(A, path)).toEqual(write(path, 'a'))
      expect(await problems(A, path, folderWith({ 'out/a.png': 'x' }))).toEqual(write(path, 'a'))
    },
  )

  it.each(['link/a.png', 'link.png'])('through a link to its folder or to the file: %s', async (path) => {
    const folder = folderWith({ 'out/a.png': 'x' })
    symlinkSync('out', join(folder, 'link'))
    symlinkSync('out/a.png', join(folder, 'link.png'))
    expect(await problems(A, path, folder)).toEqual(write(path, 'a'))
  })

  it.each([
    ['with an extension that is not known yet', 'a.webp', '{ name: a, kind: image, prompt: a }', 'a'],
    ['by count', 'a-2.png', '{ name: a, kind: image, prompt: a, count: 2 }', 'a-2'],
    [
      'by a matrix',
      'a-bear.png',
      '{ name: "a-{x}", kind: image, prompt: "{x}", matrix: { x: [fox, bear] } }',
      'a-bear',
    ],
  ])('is an error too %s', async (_, path, row, name) => {
    expect(await problems(row, path)).toEqual(write(path, name))
  })

  it('of the row itself is another error', async () => {
    expect(await problemsOf('- { name: a, kind: image, prompt: a, image_urls: [a.png] }\n')).toEqual([
      '1 image_urls: "a.png" is the output of this run itself: give the run another output',
    ])
  })

  it('needs a row of images: a video of the same stem has no such output', async () => {
    const folder = folderWith({ 'a.png': ONE_PIXEL_PNG })
    const text = '- { name: a, kind: video, prompt: a, image_urls: [a.png] }\n'
    expect(await problemsOf(text, { folder })).toEqual([])
  })
})
