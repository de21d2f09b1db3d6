// Contact sheets of what the preview renderer draws. `npm run bench -- sheet` writes docs/previews.jpg, the one in the
// README; `… sheet 9:16 /tmp/tall.jpg` draws it in another shape. To compare two versions of the renderer, run
// `… sheet proof <folder>` with each, then `… sheet compare /tmp/both.jpg <before> <after>`.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { createPreviewEngine } from '../../src/preview/index.js'
import { type Tile, writeContactSheet } from './contact-sheet.js'

/** The first twelve are the sheet of the README. */
const PROMPTS: readonly string[] = [
  'A red fox in fresh snow at dawn, soft light, wide shot',
  'a lighthouse keeper’s cottage above a stormy sea, lightning, dusk',
  'Product shot of a white running shoe on a pedestal, studio light',
  'neon city street at night in the rain, a yellow taxi drives past, cinematic',
  'close-up of a steaming bowl of ramen on a wooden table, evening light',
  'An astronaut discovers a purple planet',
  'three hot air balloons over misty hills, autumn, golden hour',
  'a woman in a red coat walks through a forest in autumn, leaves falling',
  'a dog runs along a beach with palm trees, summer',
  'an elephant and a giraffe on the savanna, sunset, wide shot',
  'northern lights over snowy mountains, a cabin',
  'underwater reef with a tropical fish and a turtle, rays of light',
  'a grey heron stands in a lake, morning mist',
  'fresh snow on a quiet village street at noon',
  'a treasure chest on the sea floor',
  'an old carpenter with a dog in his workshop',
  'abstract flowing shapes, teal and coral, geometric',
  'desert dunes with a camel caravan, noon',
  'a robot and a cat sit on a rooftop in tokyo at night',
  'two sailboats on a calm turquoise sea, sunset',
  'a castle on a cliff above the clouds, fantasy',
  '🦊❄️🌙',
  'portrait of a woman in the rain at night',
  'portrait of a woman on a beach at noon',
]
/** The last prompts are drawn with a reference: a picture of the renderer itself, with its caption. */
const WITH_REFERENCE = 22
const REFERENCE = 'a woman in a red coat'
const SHAPES = ['16:9', '1:1', '9:16', '21:9'] as const
const ASPECT = /^\d+:\d+$/

async function draw(prompt: string, aspect: string, references: readonly string[] = []): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-sheet-'))
  try {
    const input = { prompt, aspect_ratio: aspect, quality: 'basic' }
    const signal = new AbortController().signal
    const [file] = await createPreviewEngine().render({
      kind: 'image',
      input,
      folder,
      references,
      signal,
    })
    return readFileSync(join(folder, file?.name ?? ''))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Draws each prompt in each shape into a folder, reduced. Two versions of the renderer fill two folders. */
async function drawProof(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const reference = join(folder, 'reference.png')
  writeFileSync(reference, await draw(REFERENCE, '1:1'))
  for (const [at, prompt] of PROMPTS.entries()) {
    for (const [shape, aspect] of SHAPES.entries()) {
      const picture = await draw(prompt, aspect, at < WITH_REFERENCE ? [] : [reference])
      await sharp(picture)
        .resize({ height: 360 })
        .toFile(join(folder, `${at}-${shape}.png`))
    }
  }
}

/** One line a prompt: its shapes from each folder, in turn. */
async function compare(target: string, folders: readonly string[], first = 0, count = 24): Promise<void> {
  const lines = PROMPTS.slice(first, first + count).map((prompt, at) =>
    folders.flatMap((folder) =>
      SHAPES.map((_, shape): Tile => {
        const image = readFileSync(join(folder, `${first + at}-${shape}.png`))
        return shape === 0 ? { image, label: `${first + at + 1} ${prompt}` } : { image }
      }),
    ),
  )
  await writeContactSheet(target, lines, { height: 150 })
}

const [which = '', target = 'docs/previews.jpg', ...rest] = process.argv.slice(2)
if (which === 'proof') await drawProof(target)
else if (which === 'compare') {
  const folders = rest.filter((word) => !/^\d+$/.test(word))
  const [first, count] = rest.filter((word) => /^\d+$/.test(word)).map(Number)
  await compare(target, folders, first, count)
} else {
  const aspect = ASPECT.test(which) ? which : '16:9'
  const [across = 16, down = 9] = aspect.split(':').map(Number)
  const tiles: Tile[] = []
  for (const prompt of PROMPTS.slice(0, 12)) tiles.push({ image: await draw(prompt, aspect) })
  const columns = across < down ? 6 : 3
  const height = across < down ? Math.round((240 * down) / across) : Math.round((480 * down) / across)
  const lines = Array.from({ length: Math.ceil(tiles.length / columns) }, (_, line) =>
    tiles.slice(line * columns, (line + 1) * columns),
  )
  await writeContactSheet(target, lines, { height, ratio: across / down })
}
