// A contact sheet of what the preview renderer draws: `node bench/run.mjs sheet` writes docs/previews.jpg, the one in the
// README. With words: `… sheet all /tmp/all.jpg` draws all prompts (for looking at before a change is kept), and
// `… sheet 9:16 /tmp/tall.jpg` the first twelve in another shape.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPreviewEngine } from '../src/preview/index.js'
import { type Tile, writeContactSheet } from './contact-sheet.js'

/** From real life: the first twelve are the sheet. */
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
  'underwater reef with a tropical fish and a turtle, rays of light 🐠',
  '樱花树下的狐狸，清晨',
  'abstract flowing shapes, teal and coral, geometric',
  'hope',
  '🦊❄️🌙',
  'ثعلب أحمر يركض في الثلج عند الغروب',
  '   ',
  'A slow dolly shot through an old library at night. Dust hangs in the lamplight; a girl in a yellow ' +
    'raincoat opens a huge book, and paper birds rise from its pages. The camera follows them up to the ' +
    'painted ceiling, where stars begin to move. Warm tones, shallow depth of field, 35 mm, film grain, gentle ' +
    'piano music.',
  'perfume bottle, minimal, pastel pink background, soft shadows',
  'desert dunes with a camel caravan, noon',
  'portrait of an old man with a hat, black and white, dramatic light',
  'a cosy cabin in the mountains in winter, smoke, stars',
  'aerial view of a winding road and a blue car in green hills',
  'a robot and a cat sit on a rooftop in tokyo at night',
  'chocolate birthday cake with candles',
  'a castle on a cliff above the clouds, fantasy',
  'two dogs playing football on a meadow, sunny day',
  'a rocket launches from the desert at dawn',
  'Ein kleines Haus am See im Frühling',
  'two sailboats on a calm turquoise sea, sunset',
]
const ASPECT = /^\d+:\d+$/

async function draw(prompt: string, aspect: string): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-sheet-'))
  try {
    const input = { prompt, aspect_ratio: aspect, quality: 'basic' }
    const signal = new AbortController().signal
    const [file] = await createPreviewEngine().render({
      kind: 'image',
      input,
      folder,
      references: [],
      signal,
    })
    return readFileSync(join(folder, file?.name ?? ''))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const [which = '', target = 'docs/previews.jpg', first = '0'] = process.argv.slice(2)
const aspect = ASPECT.test(which) ? which : '16:9'
const [across = 16, down = 9] = aspect.split(':').map(Number)
const prompts = which === 'all' ? PROMPTS : PROMPTS.slice(Number(first), Number(first) + 12)
const columns = across < down ? 6 : 3
const height = across < down ? Math.round((240 * down) / across) : Math.round((480 * down) / across)

const tiles: Tile[] = []
for (const prompt of prompts) tiles.push({ image: await draw(prompt, aspect) })
const lines = Array.from({ length: Math.ceil(tiles.length / columns) }, (_, line) =>
  tiles.slice(line * columns, (line + 1) * columns),
)
await writeContactSheet(target, lines, { height, ratio: across / down })
