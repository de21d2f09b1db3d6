// The pictures of docs/examples.md: `npm run bench -- examples` runs the manifests of examples/ with --local (after
// `npm run build`) and writes a contact sheet of each into docs/. With names, only these: `… examples sprites shop`.
// `… examples product` draws the photo of the shop. For the frames of clips it needs Chromium (CHROMIUM, or on PATH).
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import sharp from 'sharp'
import { EMOJI } from '../../src/preview/emoji.mjs'
import { type Tile, writeContactSheet } from './contact-sheet.js'

interface Example {
  readonly manifest: string
  readonly height: number
  /** The rows of each line. */
  readonly lines: readonly RegExp[]
}

const EXAMPLES: Readonly<Record<string, Example>> = {
  sprites: { manifest: 'sprites.yaml', height: 130, lines: [/^fox-/, /^bear-/, /^owl-/] },
  shop: {
    manifest: 'shop.yaml',
    height: 130,
    lines: [/^(pack|set)-/, /^street-(front|quarter)-/, /^street-(back|detail)-/, /^trail-/],
  },
  trailer: {
    manifest: 'trailer.yaml',
    height: 150,
    lines: [
      /^(keeper$|frame-(coast|storm)-)/,
      /^frame-(stairs|lamp|dawn)-/,
      /^clip-(coast|storm)-/,
      /^clip-(stairs|lamp|dawn)-/,
    ],
  },
}

/** Seconds from the start of a clip to the frame that is shown. */
const SHOWN_AT = 1.5

interface Row {
  readonly name: string
  readonly file: string
}

/** The rows in the order of the manifest, when all their files exist. */
function runExample(folder: string, manifest: string, home: string): readonly Row[] {
  const env = { PATH: process.env.PATH, HOME: home, RUSHES_STATE_DIR: join(home, 'state') }
  const rushes = (...flags: readonly string[]): string => {
    const words = [resolve('bin/rushes.cjs'), 'batch', manifest, '--local', ...flags]
    const { status, stdout, stderr } = spawnSync(process.execPath, words, {
      cwd: folder,
      env,
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`rushes batch ${manifest} ended with ${status}\n${stderr}`)
    return stdout
  }
  rushes()
  const lines = rushes('--dry-run', '--json').split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line)).filter(({ file }) => file !== undefined)
}

/** A browser is the decoder of H.264 that most machines have. */
function frameOf(clip: string, isTall: boolean, home: string): Buffer {
  const [width, height] = isTall ? [360, 640] : [640, 360]
  const page = join(home, 'frame.html')
  const picture = join(home, 'frame.png')
  writeFileSync(
    page,
    `<body style="margin:0"><video src="${pathToFileURL(clip)}#t=${SHOWN_AT}" ` +
      `width="${width}" height="${height}" preload="auto" muted></video>`,
  )
  const { status, stderr } = spawnSync(
    process.env.CHROMIUM ?? 'chromium',
    [
      '--headless --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=5000'.split(' '),
      `--window-size=${width},${height}`,
      `--user-data-dir=${join(home, 'browser')}`,
      `--screenshot=${picture}`,
      pathToFileURL(page).href,
    ].flat(),
    { encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`Chromium ended with ${status}\n${stderr}`)
  return readFileSync(picture)
}

async function drawExample(name: string, { manifest, height, lines }: Example): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'rushes-examples-'))
  try {
    const folder = join(home, name)
    cpSync(join('examples', name), folder, {
      recursive: true,
      filter: (path) => !/assets$|\.lock\.json$/.test(path),
    })
    const rows = runExample(folder, manifest, home)
    const tileOf = ({ name: label, file }: Row): Tile => {
      const path = join(folder, file)
      const image = file.endsWith('.mp4') ? frameOf(path, label.endsWith('-tall'), home) : readFileSync(path)
      return { image, label }
    }
    const tiles = lines.map((line) => rows.filter((row) => line.test(row.name)).map(tileOf))
    if (tiles.flat().length !== rows.length)
      throw new Error(`${name}: each row must be on one line of the sheet`)
    await writeContactSheet(`docs/example-${name}.jpg`, tiles, { height, quality: 76 })
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** A stand-in for a photo: simple, and small enough for the repository. */
async function drawProduct(): Promise<void> {
  const box = 'x="-6" y="-6" width="44" height="44"'
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-6 -6 44 44" width="480" height="480">
    <rect ${box} fill="#f4f1ec"/><ellipse cx="16" cy="30.5" rx="11" ry="1.2" fill="#d8d2c8"/>${EMOJI.figures.backpack?.body}</svg>`
  await sharp(Buffer.from(svg)).png({ palette: true, colours: 32 }).toFile('examples/shop/backpack.png')
}

const words = process.argv.slice(2)
if (words.includes('product')) await drawProduct()
else
  for (const [name, example] of Object.entries(EXAMPLES))
    if (words.length === 0 || words.includes(name)) await drawExample(name, example)
