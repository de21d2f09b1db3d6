import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { IMAGE_INPUT } from '../../src/protocol/models.js'
import { ONE_PIXEL_PNG } from '../support/index.js'
import { PROOF } from '../support/proof.js'
import { documentsOf, entriesOf, folderWith, problemsOf, read } from './folder.js'

/** End of the problem of a name or output that several combinations have. */
const SHARED = 'is the same for several combinations of the matrix: write more of its keys in it'

/** A manifest of one row of images. Its fields, which are indented, begin in line 4. */
const row = (fields: string) => `defaults: { kind: image }\nruns:\n  -${fields}\n`

const outline = async (text: string, options?: Parameters<typeof read>[1]) =>
  (await entriesOf(text, options)).map(
    ({ name, output, input }) => `${name} → ${output}: ${input.prompt ?? JSON.stringify(input)}`,
  )

describe('a matrix', () => {
  it('makes a row for each combination, the last key fastest, and sets the fields that are keys', async () => {
    const text = row(`
      name: icon-{animal}-{quality}
      prompt: "{animal}, flat icon"
      matrix: {animal: [fox, bear], quality: [basic, high]}`)
    expect((await entriesOf(text)).map(({ name, input, at }) => [name, input, at.line])).toEqual([
      ['icon-fox-basic', { prompt: 'fox, flat icon', quality: 'basic' }, 4],
      ['icon-fox-high', { prompt: 'fox, flat icon', quality: 'high' }, 4],
      ['icon-bear-basic', { prompt: 'bear, flat icon', quality: 'basic' }, 4],
      ['icon-bear-high', { prompt: 'bear, flat icon', quality: 'high' }, 4],
    ])
  })

  it.each([
    [
      'fills in the output, safe as part of a file name',
      `
      name: "{ratio} {animal}"
      prompt: "{animal}"
      output: "a/{animal}/{ratio}.png"
      matrix: {animal: [con, "../x"], ratio: ["1:1"]}`,
      ['1:1 con → a/_con/1_1.png: con', '1:1 ../x → a/.._x/1_1.png: ../x'],
    ],
    [
      'keeps a dash inside a part of a file name, and leaves an empty value out',
      `
      prompt: x
      output: "fox{suffix}.png"
      matrix: {suffix: ["", "-night", "/.."]}`,
      ['fox.png → fox.png: x', 'fox-night.png → fox-night.png: x', 'fox_.png → fox_.png: x'],
    ],
    [
      'leaves the extension of the output to the output',
      `
      name: "{n}"
      prompt: x
      count: 2
      output: "{n}/fox.{ext}"
      matrix: {n: [a]}`,
      ['a → a/fox.{ext}: x', 'a-2 → a/fox-2.{ext}: x'],
    ],
    [
      'does not fill in a value again',
      `
      name: n{a}
      prompt: "{a} {b}"
      output: "{a}.png"
      matrix: {a: ["{b}", "{index}"], b: [x]}`,
      ['n{b} → _b_.png: {b} x', 'n{index} → _index_.png: {index} x'],
    ],
    [
      'has numbers and booleans as values, and texts as written',
      `
      name: v{v}
      prompt: "{v}"
      matrix: {v: [1.5, true, "007"]}`,
      ['v1.5 → v1.5.{ext}: 1.5', 'vtrue → vtrue.{ext}: true', 'v007 → v007.{ext}: 007'],
    ],
    [
      'has maps as values, known by their name',
      `
      name: icon-{animal}
      prompt: "{animal.text}, {animal}, {animal.legs} legs"
      matrix: {animal: [{name: fox, text: "a red fox, white tail", legs: 4}, {name: hen, text: a hen, legs: 2}]}`,
      [
        'icon-fox → icon-fox.{ext}: a red fox, white tail, fox, 4 legs',
        'icon-hen → icon-hen.{ext}: a hen, hen, 2 legs',
      ],
    ],
    [
      'drops the line end of a block',
      `
      name: "{a.name}"
      prompt: "{a.text}, icon"
      matrix:
        a:
          - name: fox
            text: |
              a red
              fox`,
      ['fox → fox.{ext}: a red\nfox, icon'],
    ],
    [
      'leaves other braces as they are',
      `
      name: "{animal}"
      prompt: "{} {b} {1} {not a key} {animal: x} {\\"animal\\": 1} { {{animal}}"
      matrix: {animal: [fox]}`,
      ['fox → fox.{ext}: {} {b} {1} {not a key} {animal: x} {"animal": 1} { {fox}'],
    ],
    [
      'fills in prompts that are values',
      `
      name: "{animal}-{look}"
      matrix:
        animal: [fox]
        look: [day, night]
        prompt: ["a {animal} by {look}"]`,
      ['fox-day → fox-day.{ext}: a fox by day', 'fox-night → fox-night.{ext}: a fox by night'],
    ],
    [
      'leaves combinations out',
      `
      name: "{a}{b}{c}"
      prompt: x
      matrix: {a: [1, 2], b: [{name: x, y: z}, w], c: [3]}
      exclude: [{a: 1, b: x}, {b: w, c: 3, a: "2"}]`,
      ['1w3 → 1w3.{ext}: x', '2x3 → 2x3.{ext}: x'],
    ],
    [
      'may be null',
      `
      name: "{a}"
      prompt: "{a}"
      matrix: null
      exclude: null`,
      ['{a} → _a_.{ext}: {a}'],
    ],
  ])('%s', async (_, text, expected) => {
    expect(await outline(row(text))).toEqual(expected)
  })

  it('fills in lists, parameters and the defaults, and sets the kind', async () => {
    const folder = folderWith({ 'refs/fox.png': ONE_PIXEL_PNG })
    const text = `models: { image: acme/still, video: acme/film }
defaults: { prompt: "{animal}, {shot.text}", output: "{animal}/{shot}.{ext}", aspect_ratio: "{shot.ratio}" }
runs:
  - name: "{shot}"
    image_urls: ["refs/{animal}.png", "run:{animal.run}", "https://a.example/{animal}.png"]
    matrix:
      kind: [image, video]
      shot: [{ name: wide, text: from afar, ratio: "16:9" }]
      animal: [{ name: fox, run: r1 }]
    exclude: [{ kind: video }]
  - { name: plain, output: null, kind: image, prompt: "{shot}", aspect_ratio: null }
`
    const [entry, plain] = await entriesOf(text, { folder })
    expect(entry).toMatchObject({
      name: 'wide',
      rowName: 'wide',
      kind: 'image',
      model: 'acme/still',
      output: 'fox/wide.{ext}',
      input: {
        prompt: 'fox, from afar',
        aspect_ratio: '16:9',
        image_urls: ['refs/fox.png', 'run:r1', 'https://a.example/fox.png'],
      },
    })
    expect(plain).toMatchObject({ name: 'plain', input: { prompt: '{shot}' } })
  })

  it('sets and fills in lists, and gives another model numbers', async () => {
    const text = `- name: "{n}"
  kind: image
  prompt: x
  matrix: { n: [1], image_urls: [["https://a.example/a.png", "https://a.example/{n}.png"]] }
- name: s{n}
  model: acme/other
  seed: "{n}"
  deep: ["seed {n}", "{flag}", 1]
  matrix: { n: [7, "8"], flag: [true] }
`
    const documents = documentsOf(
      '[{name: acme/other, kind: image, input: {type: object, properties: {seed: {}, deep: {}}}}]',
    )
    expect((await entriesOf(text, { documents })).map(({ input }) => input)).toEqual([
      { prompt: 'x', image_urls: ['https://a.example/a.png', 'https://a.example/1.png'] },
      { seed: 7, deep: ['seed 7', true, 1] },
      { seed: '8', deep: ['seed 8', true, 1] },
    ])
  })
})

describe('a mistake in a matrix', () => {
  const IMAGE_FIELDS = Object.keys(IMAGE_INPUT.properties).join(', ')
  const M = 'matrix: {animal: [fox, bear], aspect_ratio: ["1:1", "16:9"]}'
  const N = 'name: "{animal}-{aspect_ratio}"'

  // The run begins in line 4.
  it.each<[string, string | readonly string[]]>([
    [
      `
      name: a
      matrix: [a]`,
      '5 matrix must be a map of lists, such as {animal: [fox, bear]}',
    ],
    [
      `
      name: a
      matrix: {a: []}`,
      '5 a must be a list of values',
    ],
    [
      `
      name: a
      matrix: {a: [b, ~]}`,
      '5 a must be a list of values',
    ],
    [
      `
      name: a
      matrix: {a: [1, "1"]}`,
      '5 a value occurs twice in a',
    ],
    [
      `
      name: a
      matrix: {a: [[b]]}`,
      '5 each value of a must be a text, a number, or a map of them',
    ],
    [
      `
      name: a
      matrix: {"a b": [1]}`,
      '5 "a b" cannot be a key of the matrix: choose another name',
    ],
    [
      `
      name: a
      matrix: {"name": [1]}`,
      '5 "name" cannot be a key of the matrix: choose another name',
    ],
    [
      `
      name: a
      prompt: x
      exclude: [{a: 1}]`,
      '6 exclude needs a matrix in the same run',
    ],
    [
      `
      name: a
      prompt: x
      matrx: {a: [1]}`,
      '6 the image model has no field "matrx". Did you mean "matrix"?',
    ],
    [
      `
      ${N}
      ${M}
      exclude: {animal: fox}`,
      '6 exclude must be a list of maps with keys of the matrix, such as [{animal: bear}]',
    ],
    [
      `
      ${N}
      ${M}
      exclude: [fox, {}]`,
      '6 exclude must be a list of maps with keys of the matrix, such as [{animal: bear}]',
    ],
    [
      `
      ${N}
      ${M}
      exclude: [{anmal: fox}]`,
      '6 unknown key "anmal". Did you mean "animal"?',
    ],
    [
      `
      ${N}
      ${M}
      exclude: [{animal: fox}, {animal: fox, aspect_ratio: "1:1"}]`,
      '6 this entry of exclude matches no combination that the entries before it have left',
    ],
    [
      `
      ${N}
      ${M}
      exclude: [{animal: fox}, {animal: bear}]`,
      '6 exclude leaves out every combination',
    ],
    [
      `
      ${N}
      prompt: x
      aspect_ratio: "1:1"
      ${M}`,
      '6 aspect_ratio is also a key of the matrix: remove one of them',
    ],
    [
      `
      ${N}
      prompt: "a {anmal}"
      ${M}
      exclude: [{animal: beer}]`,
      [
        '5 unknown placeholder {anmal}. Did you mean {animal}?',
        '7 this entry of exclude matches no combination that the entries before it have left',
      ],
    ],
    [
      `
      ${N}
      prompt: x
      output: "{anmal}-{aspect_ratio}.png"
      ${M}`,
      '6 unknown placeholder {anmal}. Did you mean {animal}?',
    ],
    [
      `
      name: "{aspect_ratoi}"
      prompt: x
      matrix: {aspect_ratoi: ["1:1", "16:9"]}`,
      '6 no text of the run uses {aspect_ratoi}. Did you mean "aspect_ratio"?',
    ],
    [
      `
      name: "{aspect_rati}-{aspect_ratios}"
      prompt: "x {aspect_ratios}"
      matrix: {aspect_rati: ["1:1", "16:9"], aspect_ratios: [square]}`,
      '6 no text of the run uses {aspect_rati}. Did you mean "aspect_ratio"?',
    ],
    [
      `
      name: "{a}"
      prompt: x
      matrix: {a: [b, {text: c}]}`,
      '4 {a}: the value {"text":"c"} of a has no "name".',
    ],
    [
      `
      name: "{a.txt}"
      prompt: x
      matrix: {a: [{text: c}]}`,
      '4 {a.txt}: the value {"text":"c"} of a has no "txt".',
    ],
    [
      `
      name: "{animal}"
      prompt: x
      ${M}`,
      `4 the name "fox" ${SHARED} (animal: fox, aspect_ratio: 16:9)`,
    ],
    [
      `
      ${N}
      prompt: x
      output: "{animal}.png"
      ${M}`,
      `6 the output "fox.png" ${SHARED} (animal: fox, aspect_ratio: 16:9)`,
    ],
    [
      `
      name: "{a}"
      prompt: x
      matrix: {a: [Fox, fox]}`,
      `4 the output "fox.{ext}" ${SHARED} (a: fox)`,
    ],
    [
      `
      name: "{n}"
      prompt: x
      matrix:
        n: [1]
        aspect_ratio:
          - "1:1"
          - "2:1"`,
      [
        '4 aspect_ratio of an image must be one of 1:1, 2:3, 3:2, 3:4, 4:3, 9:16, 16:9, 21:9, not "2:1" (did you mean "1:1"?) (n: 1, aspect_ratio: 2:1)',
        `4 the name "1" ${SHARED} (n: 1, aspect_ratio: 2:1)`,
      ],
    ],
    [
      `
      ${N}
      prompt: x
      quality: hihg
      ${M}`,
      '6 quality of an image must be one of basic, high, not "hihg" (did you mean "high"?) (animal: fox, aspect_ratio: 1:1)',
    ],
    [
      `
      ${N}
      ${M}`,
      '4 prompt is missing (animal: fox, aspect_ratio: 1:1)',
    ],
    [
      `
      name: "{kind}"
      prompt: x
      duration: "5"
      matrix: {kind: [video, image]}`,
      `6 the image model has no field "duration"; expected one of: name, kind, model, output, count, label, matrix, exclude, ${IMAGE_FIELDS} (kind: image)`,
    ],
    [
      `
      ${N}
      prompt: x
      image_urls: ["{animal}.png"]
      ${M}`,
      '6 image_urls: fox.png: no such file (animal: fox, aspect_ratio: 1:1)',
    ],
    [
      `
      name: "{a}{b}"
      prompt: "{b}"
      matrix: {a: [1, 2, 3], b: [x, " "]}`,
      '5 prompt is blank (a: 1, b:  )',
    ],
  ])('is named with its line and combination: %j', async (text, expected) => {
    expect(await problemsOf(row(text))).toEqual([expected].flat())
  })
})

it('any JSON as a matrix gives rows, or problems that have a place in the text', async () => {
  const folder = folderWith()
  const text = fc.constantFrom(...'{a} {a.b} { } {a x {name} {ext} / .. {A:}'.split(' '), '{ a }', '\0')
  const texts = fc.array(text, { maxLength: 4 }).map((parts) => parts.join(''))
  const json = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constant({ a: ['x', { b: 1 }] }), texts)
  const run = fc.record({
    name: texts,
    prompt: json,
    output: texts,
    matrix: json,
    exclude: json,
    image_urls: json,
  })
  await fc.assert(
    fc.asyncProperty(run, async (made) => {
      const given = JSON.stringify([{ kind: 'image', ...made }], null, 1)
      const result = await read(given, { name: 'a.json', folder })
      const lines = given.split('\n').length
      for (const { line } of result.ok ? [] : result.problems) expect(line).toBeLessThanOrEqual(lines)
    }),
    { numRuns: 100 * PROOF },
  )
})

describe('the limit of combinations', () => {
  const numbers = (count: number) => `[${Array.from({ length: count }, (_, at) => at).join(', ')}]`
  const rows = (...counts: number[]) =>
    `defaults: { kind: image, prompt: x }\nruns:\n${counts
      .map(
        (count, at) =>
          `  - name: r${at}-{a}-{b}\n    matrix: {a: ${numbers(count / 10)}, b: ${numbers(10)}}\n`,
      )
      .join('')}`

  it.each<[readonly number[], readonly string[]]>([
    [[600, 410], []],
    [[1_010], ['4 the matrix has 1010 combinations; the limit is 1000']],
    [[100_010], ['4 the matrix has 100010 combinations before exclude; the limit is 100000']],
  ])('is 1,000 for each matrix of %j combinations', async (counts, expected) => {
    expect(await problemsOf(rows(...counts))).toEqual(expected)
  })

  it('counts what exclude has left', async () => {
    const text = row(`
      name: "{a}-{b}"
      prompt: x
      matrix: {a: ${numbers(200)}, b: ${numbers(10)}}
      exclude: [${Array.from({ length: 100 }, (_, at) => `{a: ${at}}`).join(', ')}]`)
    expect(await entriesOf(text)).toHaveLength(1_000)
  })

  it('brings each problem of a run once, whatever is wrong with its combinations', async () => {
    const text = row(`
      name: a
      prompt: x
      image_urls: ["{a}.png"]
      matrix: {a: ${numbers(20)}}`)
    expect(await problemsOf(text)).toEqual([
      `4 the name "a" ${SHARED} (a: 1)`,
      '6 image_urls: 0.png: no such file (a: 0)',
    ])
  })
})
