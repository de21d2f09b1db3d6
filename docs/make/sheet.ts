// Contact sheets of what the preview renderer draws. `npm run bench -- sheet` writes docs/previews.jpg, the one in the
// README. To judge two versions of the renderer, run `… sheet draw <folder>` with each, which draws forty prompts in three
// shapes, then `… sheet compare both.png <before> <after>`: one line a prompt.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { createPreviewEngine } from '../../src/preview/index.js'
import { type Tile, writeContactSheet } from './contact-sheet.js'

/** The first twelve are the sheet of the README. Others once failed, or are in people's own words. */
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
  'a logo',
  'a bowl of fruit, still life, van gogh style',
  'a fruit market',
  'portrait of an old fisherman with a pipe',
  'logo for a coffee shop',
  'a robot in a greenhouse',
  'a lion',
  'a woman knitting by the fireplace',
  'matte black water bottle with a bamboo lid, white background, e-commerce packshot',
  'a luxury wristwatch on black marble, macro',
  'flat lay of skincare bottles with eucalyptus leaves, beige background',
  'ceramic coffee mug mockup on a wooden desk, morning light',
  'headshot of a smiling businesswoman in her 40s, grey background',
  'portrait of a little girl with freckles and a yellow raincoat',
  'a viking warrior with an axe, dramatic lighting',
  'two old men playing chess in the park',
  'minimalist logo of a mountain, flat vector',
  'app icon for a meditation app, purple gradient',
  'avocado toast with poached egg, top view',
  'a slice of chocolate cake with raspberries on a white plate',
  'sushi platter, studio lighting',
  'liquid chrome waves, iridescent, 3d render',
  'the feeling of loneliness',
  '一只戴着红围巾的狐狸在雪中',
  '夕暮れの海辺を歩く猫',
  'قطة تجلس بجانب النافذة',
  'हिमालय में सूर्योदय',
  'ein roter Oldtimer auf einer Landstraße im Herbst',
]
const SHAPES = ['16:9', '1:1', '9:16']

async function draw(prompt: string, aspect_ratio: string): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-sheet-'))
  try {
    const input = { prompt, aspect_ratio, quality: 'basic' }
    const { signal } = new AbortController()
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

const nameOf = (folder: string, prompt: number, shape: number): string =>
  join(folder, `${prompt + 1}-${shape}.png`)

async function drawAll(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  for (const [at, prompt] of PROMPTS.entries())
    for (const [shape, aspect] of SHAPES.entries())
      await sharp(await draw(prompt, aspect))
        .resize({ height: 360 })
        .toFile(nameOf(folder, at, shape))
}

async function compare(target: string, folders: readonly string[]): Promise<void> {
  const lines = PROMPTS.map((prompt, at) =>
    folders.flatMap((folder) =>
      SHAPES.map((_, shape): Tile => {
        const image = readFileSync(nameOf(folder, at, shape))
        return shape === 0 ? { image, label: `${at + 1} ${prompt}` } : { image }
      }),
    ),
  )
  await writeContactSheet(target, lines, { height: 150 })
}

const [which = '', target = '', ...folders] = process.argv.slice(2)
if (which === 'draw') await drawAll(target)
else if (which === 'compare') await compare(target, folders)
else {
  const tiles: Tile[] = []
  for (const prompt of PROMPTS.slice(0, 12)) tiles.push({ image: await draw(prompt, '16:9') })
  const lines = [0, 3, 6, 9].map((first) => tiles.slice(first, first + 3))
  await writeContactSheet('docs/previews.jpg', lines, { height: 270, ratio: 16 / 9 })
}
