import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SentReference } from '../../src/batch/manifest/entry.js'
import { inputToSend } from '../../src/batch/manifest/sources.js'
import { fileUrl } from '../../src/cli/runs/run-outputs.js'
import { identityOf } from '../../src/protocol/identity.js'
import { writeJson } from '../../src/protocol/json.js'
import { anyCharacter } from '../support/any-character.js'
import { ONE_PIXEL_PNG } from '../support/index.js'
import { PROOF } from '../support/proof.js'
import { documentsOf, entriesOf, folderWith, problemsOf, read } from './folder.js'

const outline = async (text: string, options?: Parameters<typeof read>[1]) =>
  (await entriesOf(text, options)).map(({ name, output }) => `${name} → ${output}`)

describe('the formats', () => {
  const yaml = `runs:
  - name: fox
    kind: image
    prompt: |
      a "fox",
      red
    quality: high
  - { name: boat, kind: video, prompt: a boat, duration: 5, image_urls: [https://a.example/1.png, run:x] }
`
  const fox = '{"name": "fox", "kind": "image", "prompt": "a \\"fox\\",\\nred", "quality": "high"}'
  const boat =
    '{"name": "boat", "kind": "video", "prompt": "a boat", "duration": "5", "image_urls": ["https://a.example/1.png", "run:x"]}'
  const csv = `name,kind,prompt,quality,duration,image_urls
fox,image,"a ""fox"",
red",high,,
boat,video,a boat,,5,https://a.example/1.png  run:x`

  it.each([
    ['shots.yaml', yaml],
    ['shots.yml', `\ufeff${yaml.replaceAll('\n', '\r\n')}`],
    ['shots.json', `{\n\t"runs": [\n\t\t${fox},\n\t\t${boat}\n\t]\n}`],
    ['shots.jsonl', `${fox}\r\n\r\n${boat}`],
    ['shots.csv', csv],
    ['shots.csv', `\ufeff${csv.replaceAll('\n', '\r\n')}\r\n`],
  ])('say the same: %s', async (name, text) => {
    const entries = await entriesOf(text, { name })
    expect(entries.map((entry) => [entry.name, entry.kind, entry.input, entry.output])).toEqual([
      ['fox', 'image', { prompt: 'a "fox",\nred', quality: 'high' }, 'fox.{ext}'],
      [
        'boat',
        'video',
        { prompt: 'a boat', duration: '5', image_urls: ['https://a.example/1.png', 'run:x'] },
        'boat.{ext}',
      ],
    ])
  })

  it('give rows, or problems that have a place in the text, whatever it is', async () => {
    const folder = folderWith()
    const words =
      'runs: - name : kind: image prompt models: {image: a/b} defaults: count: 2 output: a.png {ext} ../ é , { } [ ] " \' &a *a <<: !x | > # --- % ? \\ null 1e999'
    const piece = fc.oneof(
      fc.constantFrom(...words.split(' ')),
      fc.constantFrom(' ', '  ', '\n', '\t', '\r\n', '\ud800', '\0'),
    )
    const text = fc.oneof(
      fc.array(piece, { maxLength: 25 }).map((pieces) => pieces.join('')),
      fc.string({ unit: anyCharacter }),
      fc.json(),
    )
    await fc.assert(
      fc.asyncProperty(
        text,
        fc.constantFrom('a.yaml', 'a.json', 'a.jsonl', 'a.csv', 'a'),
        async (given, name) => {
          const result = await read(given, { name, folder })
          if (result.ok) return
          const lines = given.split('\n').length + given.split('\r').length
          for (const { line } of result.problems) expect(line >= 1 && line <= lines).toBe(true)
        },
      ),
      { numRuns: 100 * PROOF },
    )
  })
})

describe('YAML', () => {
  it('has anchors, aliases and merge keys, the row itself first', async () => {
    const text = `x-style: &style { quality: high, aspect_ratio: "1:1" }
x-wide: &wide { aspect_ratio: 16:9, kind: image }
runs:
  - { <<: [*style, *wide], name: a, prompt: x }
  - { <<: *wide, name: b, prompt: &p y, aspect_ratio: 21:9 }
  - { <<: *wide, name: c, prompt: *p }
`
    expect((await entriesOf(text)).map(({ input }) => input)).toEqual([
      { prompt: 'x', aspect_ratio: '1:1', quality: 'high' },
      { prompt: 'y', aspect_ratio: '21:9' },
      { prompt: 'y', aspect_ratio: '16:9' },
    ])
  })

  const bomb = ['x-a: &a0 [x, x]']
  for (let at = 1; at < 60; at++)
    bomb.push(
      `x-${at}: &a${at} [${Array(9)
        .fill(`*a${at - 1}`)
        .join(', ')}]`,
    )

  it.each([
    ['aliases that blow up', `x-${bomb.join('\n')}\nruns: []`, /^1 Excessive alias count/],
    ['an alias of itself', 'x-a: &a [*a]\nruns: []', /^1 \*a is inside the value that it repeats$/],
    ['an unknown alias', 'runs: *a', /^1 Unresolved alias .*: a$/],
    ['brackets without end', '['.repeat(20_000), /nested too deeply/],
    ['two documents', 'runs: []\n---\nruns: []', /^2 a second YAML document starts here/],
    ['a field that occurs twice', 'runs:\n  - name: a\n    name: b', /^3 the key "name" occurs twice$/],
    ['a tag', 'runs: !mine []', /^1 unresolved tag: !mine$/],
    ['a map as a name', 'runs: [{? {a: b} : c}]', /^1 a key must be text$/],
    ['nothing', '', /^1 the manifest is empty$/],
    ['UTF-16', Buffer.from('\ufeffruns: []', 'utf16le'), /^1 the manifest is UTF-16 text: save it as UTF-8$/],
    ['other bytes', Buffer.from([0x61, 0xff]), /^1 the manifest is not valid UTF-8 text$/],
    ['too many bytes', Buffer.alloc(16 * 1024 * 1024 + 1, ' '), /16 MiB/],
  ])('is refused for %s', async (_, text, pattern) => {
    const problems = await problemsOf(text)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(pattern)
  })

  it.each([
    ['a sign that says: hello', '2 put the text in quotes: without them, a ": " in it starts a map'],
    ['@home', '2 plain value cannot start with reserved character @'],
  ])('names the line of a text that needs quotes: %s', async (prompt, problem) => {
    expect(await problemsOf(`runs:\n  - prompt: ${prompt}\n    name: x\n`)).toEqual([problem])
  })
})

it('JSON and CSV leave out the empty rows and columns that a spreadsheet writes', async () => {
  const text = 'name,prompt,kind,\n,,,\nx,a fox,image,\n , ,,\n'
  expect(await outline(text, { name: 'a.csv' })).toEqual(['x → x.{ext}'])
})

it.each([
  ['a.json', '{"runs": []} x', '1 unexpected scalar at node end'],
  ['a.json', '[\n"a', '2 missing closing "quote'],
  ['a.json', '{"runs": [],\n "runs": []}', '2 the key "runs" occurs twice'],
  ['a.json', '['.repeat(20_000), '1 the text is nested too deeply'],
  ['a.json', '{"a": 1', '1 flow map must end with a }'],
  [
    'a.jsonl',
    '{"name": "a", "kind": "image", "prompt": "x"}\n{"name"}',
    /^2 invalid JSON: Expected ':' after property name/,
  ],
  ['a.csv', 'name,kind,promt\na,image,b', '2 the image model has no field "promt". Did you mean "prompt"?'],
  ['a.csv', 'name,prompt,name\na,b,c', '1 the column "name" occurs twice'],
  ['a.csv', 'name,prompt,matrix\na,b,c', /^2 matrix must be a map of lists/],
  ['a.csv', 'name,kind,prompt\na,image,"x', /^2 invalid CSV: Quote Not Closed/],
  ['a.csv', 'name,kind,prompt\na,image,a fox, red', /^2 invalid CSV: Invalid Record Length/],
  ['a.csv', 'name,kind,prompt\n"x\ny",image,x\nb,image,x\nc,imag,x', /^2 name must be a text of/],
  ['a.csv', 'name,kind,prompt\n\n\nb,image,x\r\nc,imag,x', '5 unknown kind "imag". Did you mean "image"?'],
])('JSON and CSV with a mistake are refused with its line: %s %j', async (name, text, problem) => {
  const [first] = await problemsOf(text, { name })
  if (typeof problem === 'string') expect(first).toBe(problem)
  else expect(first).toMatch(problem)
})

describe('a number', () => {
  const documents = documentsOf(
    '[{name: acme/x, kind: image, input: {type: object, properties: {seed: {}}}}]',
  )
  const other = (value: string) => `- {name: a, model: acme/x, seed: ${value}}`

  it.each<[string, string, string]>([
    ['a.yaml', other('36893488147419103233'), '1 seed'],
    ['a.yaml', other('[1, {deep: -36893488147419103233}]'), '1 seed.1.deep'],
    ['a.yaml', other('1e400'), '1 seed'],
    ['a.yaml', 'defaults: {kind: image}\nruns: [{name: a, prompt: 36893488147419103233}]', '2 prompt'],
  ])('that would be sent as another one is an error: %s %s', async (name, text, place) => {
    expect(await problemsOf(text, { name, documents })).toEqual([
      `${place} cannot be sent as a number without a change: put it in quotes`,
    ])
  })

  it.each<[string, unknown]>([
    ['9007199254740993', 9007199254740993n],
    ['-9223372036854775808', -9223372036854775808n],
    ['0xffffffffffffffff', 18446744073709551615n],
    ['1.50', 1.5],
    ['1e3', 1000],
    ['"9007199254740993"', '9007199254740993'],
    ['1_000', '1_000'],
  ])('%s is sent as %s', async (written, value) => {
    const [entry] = await entriesOf(other(written), { documents })
    expect(writeJson(entry?.input)).toBe(writeJson({ seed: value }))
  })

  it.each([
    ['a.yaml', other('18446744073709551615')],
    ['a.yaml', '- {name: a, model: acme/x, matrix: {i: [18446744073709551615]}, seed: "{i}"}'],
    ['a.jsonl', '{"name": "a", "model": "acme/x", "seed": 18446744073709551615}'],
    ['a.csv', 'name,model,seed\na,acme/x,18446744073709551615'],
  ])(
    'of 64 bits keeps its digits in every format, and is another input than its neighbour: %s %s',
    async (name, text) => {
      const [entry] = await entriesOf(text, { name, documents })
      expect(writeJson(entry?.input)).toBe('{"seed":18446744073709551615}')
      const [neighbour] = await entriesOf(text.replace('1615', '1614'), { name, documents })
      expect(identityOf('acme/x', entry?.identities[0])).not.toBe(
        identityOf('acme/x', neighbour?.identities[0]),
      )
    },
  )
})

describe('names and outputs', () => {
  /** Rows of images with these fields, one a line. */
  const rows = (...texts: readonly string[]) =>
    texts.map((text) => `- {kind: image, prompt: x, ${text}}`).join('\n')

  it.each<[string | readonly string[], string | readonly string[]]>([
    ['name: fox', 'fox → fox.{ext}'],
    ['name: icons/fox', 'icons/fox → icons/fox.{ext}'],
    ['name: "a: b?"', 'a: b? → a_ b_.{ext}'],
    ['name: con', 'con → _con.{ext}'],
    ['name: ../fox, output: fox.png', '../fox → fox.png'],
    ['output: ./a//fox.png', 'a/fox.png → a/fox.png'],
    ['output: "a/fox.{ext}"', 'a/fox → a/fox.{ext}'],
    ['name: fox, count: 3', ['fox → fox.{ext}', 'fox-2 → fox-2.{ext}', 'fox-3 → fox-3.{ext}']],
    ['output: a/fox.png, count: 2', ['a/fox.png → a/fox.png', 'a/fox-2.png → a/fox-2.png']],
    ['name: fox, count: 2, output: "f{index}/{kind}.png"', ['fox → f1/image.png', 'fox-2 → f2/image.png']],
    ['name: fox, output: "art/{name}.{ext}"', ['fox → art/fox.{ext}']],
    ['name: a/b, output: "x/{name}.png"', 'a/b → x/a_b.png'],
    [
      ['name: fox', 'name: fox2, output: fox.mp4'],
      ['fox → fox.{ext}', 'fox2 → fox.mp4'],
    ],
  ])('of the rows %j are %j', async (texts, expected) => {
    expect(await outline(rows(...[texts].flat()))).toEqual([expected].flat())
  })

  it('come from the defaults too', async () => {
    const text = `defaults: { kind: image, output: a.png }\nruns:\n  - {name: x, prompt: x}\n  - {name: y, prompt: x, output: null}`
    expect(await outline(text)).toEqual(['x → a.png', 'y → y.{ext}'])
  })

  it.each<[string | readonly string[], string]>([
    ['', '1 name or output is missing'],
    ['name: a, output: "{id}.png"', 'can contain {name}, {kind}, {index}, and {ext} as the extension'],
    ['name: a, output: "{ext}"', 'and {ext} as the extension'],
    ['name: a, output: "a/.{ext}"', 'and {ext} as the extension'],
    ['output: "{name}.png"', 'contains {name}, but the run has no name'],
    ['name: a, output: a/', 'is a folder'],
    ["name: a, output: 'a\\b.png'", 'contains a backslash'],
    ['name: a, output: ../a.png', 'is outside the folder of the manifest'],
    ['name: a, output: /tmp/a.png', 'is outside'],
    ['name: a, output: "C:/a.png"', 'is outside'],
    [['name: a', 'name: a'], '2 the name "a" is already used in line 1'],
    [['name: a, count: 2', 'name: a-2, output: x.png'], 'the name "a-2" is already used in line 1'],
    [
      ['output: a/Fox.png', 'output: A/fOX.png'],
      '2 the output "A/fOX.png" is already used in line 1 ("a/Fox.png")',
    ],
    [['output: "caf\u00e9.png"', 'output: "cafe\u0301.png"'], 'is already used in line 1'],
    [['name: fox', 'name: b, output: fox.png'], 'the output "fox.png" is already used in line 1'],
    [['name: b, output: fox.webp', 'name: fox'], 'the output "fox.{ext}" is already used in line 1'],
    [
      ['output: x.png', 'output: x.png/y.png'],
      '2 the output "x.png/y.png" is inside a folder that is the output of line 1 ("x.png")',
    ],
    [
      ['output: X.png/a/y.png', 'name: x'],
      '1 the output "X.png/a/y.png" is inside a folder that is the output of line 2 ("x.{ext}")',
    ],
    ['name: a, output: shots.yaml', 'is a file of the batch itself'],
    ['name: a, output: Shots.lock.json', 'is a file of the batch itself'],
    [['name: a, count: 9000', 'name: b, count: 9000'], 'the manifest has more than 10000 runs'],
  ])('%j is refused', async (texts, problem) => {
    const problems = await problemsOf(rows(...[texts].flat()))
    expect(problems.join('\n')).toContain(problem)
    expect(problems).toHaveLength(1)
  })

  it('may lie outside when that is allowed', async () => {
    expect(await outline(rows('name: a, output: ../a.png'), { allowOutside: true })).toEqual(['a → ../a.png'])
  })

  it('follow links to their real folders', async () => {
    const elsewhere = folderWith()
    const folder = folderWith({ 'real/x.txt': '' })
    symlinkSync(elsewhere, join(folder, 'out'))
    symlinkSync('real', join(folder, 'alias'))
    expect(await problemsOf(rows('name: a, output: out/new/a.png'), { folder })).toEqual([
      expect.stringContaining('is outside'),
    ])
    expect(await outline(rows('name: a, output: alias/a.png'), { folder })).toEqual(['a → alias/a.png'])
    expect(await problemsOf(rows('output: alias/a.png', 'output: real/a.png'), { folder })).toEqual([
      expect.stringContaining('already used in line 1'),
    ])
  })
})

describe('defaults and models', () => {
  it('fill what a row leaves out, and only what its kind knows', async () => {
    const text = `
models: { image: acme/still-1, video: acme/cinema-1 }
defaults: { kind: image, quality: high, aspect_ratio: 16:9, count: 1 }
runs:
  - { name: a, prompt: x }
  - { name: b, prompt: x, quality: null, aspect_ratio: 1:1 }
  - { name: c, prompt: x, kind: video }
  - { name: d, prompt: x, model: acme/still-2 }
  - { name: f, model: acme/cinema-1, prompt: x }
`
    expect((await entriesOf(text)).map(({ kind, model, input }) => [kind, model, input])).toEqual([
      ['image', 'acme/still-1', { prompt: 'x', aspect_ratio: '16:9', quality: 'high' }],
      ['image', 'acme/still-1', { prompt: 'x', aspect_ratio: '1:1' }],
      ['video', 'acme/cinema-1', { prompt: 'x', aspect_ratio: '16:9' }],
      ['image', 'acme/still-2', { prompt: 'x', aspect_ratio: '16:9', quality: 'high' }],
      ['video', 'acme/cinema-1', { prompt: 'x', aspect_ratio: '16:9' }],
    ])
  })

  it('bring each mistake once, however many rows they serve', async () => {
    const text = `defaults: { kind: image, quality: hihg }\nruns:\n  - {name: a, prompt: x}\n  - {name: b, prompt: x}`
    expect(await problemsOf(text)).toEqual([
      '1 quality of an image must be one of basic, high, not "hihg" (did you mean "high"?)',
    ])
    expect(await problemsOf(text.replace('quality: hihg', 'xyz: 1'))).toEqual([
      '1 unknown field "xyz"; expected one of: name, kind, model, output, count, label, matrix, exclude, prompt, aspect_ratio, resolution, duration, image_urls, quality',
    ])
  })
})

describe('reference images', () => {
  const urlOf = (reference: SentReference) =>
    reference.from === 'file' ? fileUrl(reference, 'a') : Promise.reject(new Error('no row is used'))
  const text =
    '- {name: a, kind: image, prompt: x, image_urls: [refs/a.png, "https://a.example/b.png", "run:r1#2"]}'

  it('count by their content, and are sent as data', async () => {
    const folder = folderWith({ 'refs/a.png': ONE_PIXEL_PNG })
    const [entry] = await entriesOf(text, { folder })
    if (entry === undefined) throw new Error('no entry')
    const sent = await inputToSend(entry, urlOf)
    expect(sent.image_urls).toEqual([
      `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`,
      'https://a.example/b.png',
      'run:r1#2',
    ])
    expect(identityOf('acme/x', entry.identities[0])).toBe(identityOf('acme/x', sent))
    writeFileSync(join(folder, 'refs/a.png'), Buffer.concat([ONE_PIXEL_PNG, Buffer.from('x')]))
    const [changed] = await entriesOf(text, { folder })
    expect(identityOf('acme/x', changed?.identities[0])).not.toBe(identityOf('acme/x', entry.identities[0]))
    await expect(inputToSend(entry, urlOf)).rejects.toThrow('changed while the batch was running')
  })

  it('have their place named when they cannot be sent', async () => {
    const folder = folderWith({ 'text.png': 'no image', 'big.png': '' })
    mkdirSync(join(folder, 'folder'))
    const list = '[text.png, none.png, folder, "-", "https://", " "]'
    expect(
      await problemsOf(`- name: a\n  kind: image\n  prompt: x\n  image_urls: ${list}`, { folder }),
    ).toEqual([
      '4 image_urls: text.png is not a PNG, JPEG, WebP, GIF or AVIF image',
      '4 image_urls: none.png: no such file',
      '4 image_urls: folder is not a regular file',
      '4 image_urls: a manifest cannot read a file from standard input',
      '4 image_urls: "https://" is not a valid URL',
      '4 image_urls: a source is blank',
    ])
  })

  it('fail when they are too large together', async () => {
    const big = Buffer.concat([ONE_PIXEL_PNG, Buffer.alloc(400_000)])
    const folder = folderWith({ 'a.png': big, 'b.png': big })
    const problems = await problemsOf('- {name: c, kind: image, prompt: x, image_urls: [a.png, b.png]}', {
      folder,
      maxBodyBytes: 1024 * 1024,
    })
    expect(problems).toEqual([
      expect.stringMatching(/request of \d+ bytes, and a request may have at most 1 MiB/),
    ])
  })
})
