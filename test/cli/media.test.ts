/** Media parameters: pictures, films and sound in any field of a model, on the whole way from a flag to the provider. */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { beforeAll, expect, it } from 'vitest'
import {
  type CommandLine,
  createLocalHome,
  ONE_PIXEL_PNG,
  outputOf,
  usageErrorOf,
  wordsOf,
} from '../support/index.js'
import { createFalServer, SECRET } from '../support/model-servers/fal.js'

const pictureOf = (text: string): Buffer => Buffer.concat([ONE_PIXEL_PNG, Buffer.from(text)])
const dataUrl = (bytes: Buffer, type = 'image/png'): string =>
  `data:${type};base64,${bytes.toString('base64')}`
const SOUND = Buffer.from('ID3 a song')
const PUBLIC = 'https://203.0.114.9/style.png'

/** What `rushes models import` writes for an endpoint with two frames, a mask, styles and a sound. */
const DOCUMENT = {
  name: 'acme/film',
  kind: 'image',
  input: {
    type: 'object',
    required: ['prompt', 'image_urls'],
    properties: {
      prompt: { type: 'string' },
      image_urls: { type: 'array', items: { type: 'string' }, maxItems: 1 },
      end_image_url: { type: 'string', description: 'The last frame' },
      mask_url: { type: 'string', media: 'image' },
      style_urls: { type: 'array', media: 'image', items: { type: 'string' } },
      sound: { type: 'string', format: 'uri', description: 'The audio' },
      page_url: { type: 'string', media: false },
      elements: { type: 'array', items: { type: 'object', properties: { image_url: { type: 'string' } } } },
    },
  },
}

/** A home with the model, behind a simulated fal, and the files `a.png`, `b.png`, `mask.png`, `song.mp3`, `notes.txt`. */
async function createPlace() {
  const server = await createFalServer()
  const { run, file } = createLocalHome({ FAL_KEY: SECRET })
  const engine = { type: 'fal', url: server.url, model: 'acme/film', references: 'image_url' }
  writeFileSync(file('film.yaml'), JSON.stringify({ ...DOCUMENT, engine }))
  for (const name of ['a', 'b', 'mask']) writeFileSync(file(`${name}.png`), pictureOf(name))
  writeFileSync(file('song.mp3'), SOUND)
  writeFileSync(file('notes.txt'), 'no picture')
  outputOf(await run(`config set local.models ${file('film.yaml')}`))
  const film = (flags: CommandLine, stdin?: Buffer | string) =>
    run(
      ['run', 'image', '--local', '--model', 'acme/film', 'it moves', '-i', file('a.png'), ...wordsOf(flags)],
      stdin === undefined ? {} : { stdin },
    )
  return { run, film, file, server, sent: () => server.jobs.map(({ input }) => input) }
}

it('a run sends each picture and sound as its content, by the name that the provider has for it', async () => {
  const { film, run, file, sent } = await createPlace()
  const [b, mask, song, out] = ['b.png', 'mask.png', 'song.mp3', 'out.png'].map(file)
  const made = await film(
    `--end-image-url ${b} --mask-url ${mask} --style-urls ${PUBLIC} --style-urls ${b} --sound ${song} --page-url b.png -o ${out}`,
  )
  expect(made).toMatchObject({ code: 0, stdout: `${out}\n` })
  expect(sent()).toEqual([
    {
      prompt: 'it moves',
      image_url: dataUrl(pictureOf('a')),
      end_image_url: dataUrl(pictureOf('b')),
      mask_url: dataUrl(pictureOf('mask')),
      style_urls: [PUBLIC, dataUrl(pictureOf('b'))],
      sound: dataUrl(SOUND, 'audio/mpeg'),
      page_url: 'b.png',
    },
  ])
  const shown = await run('show --last --local --json')
  const sha256 = createHash('sha256').update(pictureOf('b')).digest('hex')
  const summary = { sha256, bytes: pictureOf('b').length, content_type: 'image/png' }
  expect(JSON.parse(shown.stdout).input).toMatchObject({
    end_image_url: summary,
    style_urls: [PUBLIC, summary],
    sound: { content_type: 'audio/mpeg' },
    page_url: 'b.png',
  })
  expect(shown.stdout).not.toContain('base64')
})

let shared: Awaited<ReturnType<typeof createPlace>>
beforeAll(async () => {
  shared = await createPlace()
})

it.each([
  [['--end-image-url', 'notes.txt'], 'end_image_url: notes.txt is not a PNG, JPEG, WebP, GIF or AVIF image.'],
  [['--input', '{"mask_url": "a\\u0000.png"}'], 'is not a path: it contains a null character.'],
  [['--sound', 'a.png'], 'sound: a.png is not an MP3, WAV, FLAC, Ogg or M4A file.'],
  [['--input', '{"mask_url": "notes.txt"}'], 'mask_url: notes.txt is not a PNG'],
  [
    ['--input', '{"elements": [{"image_url": "b.png"}]}'],
    'input.elements (entry 1) has the field "image_url", which takes an http(s) or data: URL, not "b.png".',
  ],
  [['--end-image-url', 'a.png', '--end-image-url', 'b.png'], '--end-image-url takes only one value'],
])(
  'a value that is no picture or sound is a usage error with its parameter, and nothing is sent: %j',
  async (flags, message) => {
    const { film, file, server } = shared
    const words = flags.map((word) => (/^\w+\.(png|mp3|txt)$/.test(word) ? file(word) : word))
    const input = words.map((word) => word.replace('"notes.txt"', JSON.stringify(file('notes.txt'))))
    const shown = usageErrorOf(await film(input)).replaceAll(file('').replace(/\/?$/, '/'), '')
    expect(shown).toContain(message)
    expect(server.requests).toEqual([])
  },
)

it('a media parameter takes a data: URL of more than 256 KiB in --input, and standard input', async () => {
  const { film, file, sent, run } = await createPlace()
  const large = Buffer.concat([ONE_PIXEL_PNG, Buffer.alloc(300_000)])
  writeFileSync(file('input.json'), JSON.stringify({ mask_url: dataUrl(large) }))
  const out = `-o ${file('out.png')} --overwrite`
  outputOf(await film(`--input @${file('input.json')} ${out}`))
  // Uploaded, since it is too large for the request.
  expect(sent()[0]?.mask_url).toBe('https://v3.fal.media/uploads/1-mask_url-1.png')
  expect(outputOf(await run('show --last --local'))).not.toContain('base64')
  outputOf(await film(`--mask-url - ${out}`, pictureOf('piped')))
  expect(sent()[1]?.mask_url).toBe(dataUrl(pictureOf('piped')))
  outputOf(await film(`--style-urls - ${out}`, `${PUBLIC}\n${file('b.png')}\n`))
  expect(sent()[2]?.style_urls).toEqual([PUBLIC, dataUrl(pictureOf('b'))])
  expect(usageErrorOf(await film('--mask-url -', `${PUBLIC}\n${PUBLIC}\n`))).toContain(
    'mask_url takes one source, and standard input has 2.',
  )
  expect(usageErrorOf(await film('--mask-url - --sound -', 'x'))).toContain(
    '--mask-url and --sound cannot both read standard input',
  )
  expect(sent()).toHaveLength(3)
})

it('a media parameter takes an output of an earlier run', async () => {
  const { film, file, sent, run } = await createPlace()
  await film(`-o ${file('one.png')}`)
  const { id } = JSON.parse(outputOf(await run('show --last --local --json')))
  outputOf(await film(`--end-image-url run:${id} -o ${file('two.png')}`))
  expect(sent()[1]?.end_image_url).toBe(dataUrl(readFileSync(file('one.png'))))
})

it('rows of a batch wait for the rows that they use in any media parameter, and are created again when a file in it changes', async () => {
  const { run, file, sent } = await createPlace()
  writeFileSync(
    file('shots.yaml'),
    `defaults: { model: acme/film }
runs:
  - { name: film, prompt: it moves, image_urls: [row:start], end_image_url: row:end, mask_url: mask.png, output: film.png }
  - { name: start, prompt: the start, image_urls: [a.png], output: start.png }
  - { name: end, prompt: the end, image_urls: [b.png], output: end.png }
`,
  )
  const batch = (flag = '') => run(`batch ${file('shots.yaml')} --local ${flag}`)
  outputOf(await batch())
  expect(sent().map(({ prompt }) => prompt)).toEqual(['the start', 'the end', 'it moves'])
  expect(sent()[2]).toMatchObject({
    image_url: dataUrl(readFileSync(file('start.png'))),
    end_image_url: dataUrl(readFileSync(file('end.png'))),
    mask_url: dataUrl(pictureOf('mask')),
  })
  outputOf(await batch())
  expect(sent()).toHaveLength(3)
  writeFileSync(file('mask.png'), pictureOf('another'))
  expect(outputOf(await batch('--dry-run'))).toMatch(/film\.png\tmodel or input changed/)
  outputOf(await batch())
  expect(sent()).toHaveLength(4)
  expect(sent()[3]?.mask_url).toBe(dataUrl(pictureOf('another')))
})
