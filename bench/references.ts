// Seconds and peak memory of the preview renderer with large reference images: photographs of cameras, and files that are
// small on disk and huge when they are decoded. `npm run bench:references`, or with a word of a name to narrow it:
// `npm run bench:references -- AVIF`. One child process per render; the files are made in a further one and kept in the
// temporary folder. Prints a Markdown table. With the word `service`: reference-memory.ts.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import sharp, { type Sharp } from 'sharp'
import { createPreviewEngine } from '../src/preview/index.js'
import type { Kind } from '../src/protocol/models.js'
import { measureService } from './reference-memory.js'

const FILES = join(tmpdir(), 'rushes-bench-references')

const flat = (side: number, channels: 3 | 4 = 3): Sharp =>
  sharp({
    create: { width: side, height: side, channels, background: { r: 200, g: 80, b: 20, alpha: 0.5 } },
  })

/** As much detail as a photograph has, so that its decoder has the same work. */
async function photograph(width: number, height: number): Promise<Sharp> {
  const noise = { type: 'gaussian', mean: 128, sigma: 40 } as const
  const small = { width: width / 4, height: height / 4, channels: 3, background: '#000', noise } as const
  return sharp(await sharp({ create: small }).png().toBuffer()).resize(width, height)
}

async function animation(frames: number): Promise<Sharp> {
  const frame = await sharp({
    create: { width: 800, height: 800, channels: 3, background: '#000', noise: { type: 'gaussian' } },
  })
    .png()
    .toBuffer()
  return sharp(
    Array.from({ length: frames }, () => frame),
    { join: { animated: true } },
  )
}

const SOURCES: Readonly<Record<string, () => Promise<Buffer>>> = {
  'JPEG 24 MP': async () => (await photograph(6000, 4000)).jpeg({ quality: 90 }).toBuffer(),
  'JPEG 50 MP': async () => (await photograph(8688, 5792)).jpeg({ quality: 90 }).toBuffer(),
  'progressive JPEG 50 MP': async () =>
    (await photograph(8688, 5792)).jpeg({ quality: 90, progressive: true }).toBuffer(),
  'AVIF 8 MP': async () => (await photograph(3840, 2160)).avif({ effort: 0 }).toBuffer(),
  'WebP 24 MP': async () => (await photograph(6000, 4000)).webp({ effort: 0 }).toBuffer(),
  'AVIF 8192², one colour': () => flat(8192).avif({ effort: 0 }).toBuffer(),
  'JPEG 10000², one colour': () => flat(10_000).jpeg().toBuffer(),
  'progressive JPEG 10000²': () =>
    flat(10_000).jpeg({ progressive: true, chromaSubsampling: '4:4:4' }).toBuffer(),
  'interlaced 16-bit PNG 4000²': () =>
    flat(4_000, 4).toColourspace('rgb16').png({ progressive: true }).toBuffer(),
  'interlaced 16-bit PNG 10000²': () =>
    flat(10_000, 4).toColourspace('rgb16').png({ progressive: true }).toBuffer(),
  '16-bit PNG 10000²': () => flat(10_000, 4).toColourspace('rgb16').png().toBuffer(),
  'WebP 10000², lossless': () => flat(10_000).webp({ lossless: true, effort: 0 }).toBuffer(),
  'GIF 10000²': () => flat(10_000).gif({ effort: 1 }).toBuffer(),
  'GIF 800², 300 frames': async () => (await animation(300)).gif({ effort: 1, dither: 0 }).toBuffer(),
  'WebP 800², 300 frames': async () => (await animation(300)).webp({ effort: 0 }).toBuffer(),
}

const INPUTS: Readonly<Record<string, { readonly kind: Kind; readonly input: Record<string, string> }>> = {
  image: { kind: 'image', input: { prompt: 'a fox', aspect_ratio: '1:1', quality: 'high' } },
  video: {
    kind: 'video',
    input: { prompt: 'a fox', aspect_ratio: '16:9', resolution: '1080p', duration: '10' },
  },
}

type Case = readonly [output: string, count: number, source: string]

const CASES: readonly Case[] = [
  ['image', 0, ''],
  ['video', 0, ''],
  ...Object.keys(SOURCES).flatMap((source): Case[] => [
    ['image', 1, source],
    ['image', 14, source],
  ]),
  ...[
    'JPEG 24 MP',
    'progressive JPEG 50 MP',
    'AVIF 8192², one colour',
    'interlaced 16-bit PNG 4000²',
  ].flatMap((source): Case[] => [
    ['video', 1, source],
    ['video', 14, source],
  ]),
]

const fileOf = (source: string): string => join(FILES, source.replace(/\W+/g, '-'))

async function make(source: string): Promise<void> {
  mkdirSync(FILES, { recursive: true })
  writeFileSync(`${fileOf(source)}.part`, (await SOURCES[source]?.()) ?? '')
  renameSync(`${fileOf(source)}.part`, fileOf(source))
}

/** Seconds, seconds of the processor, and the peak of the process in MiB. */
async function measure([output, count, source]: Case): Promise<readonly [number, number, number]> {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-bench-'))
  try {
    const references = Array.from({ length: count }, () => fileOf(source))
    const { kind, input } = INPUTS[output] ?? {}
    if (kind === undefined || input === undefined) throw new Error(output)
    const { signal } = new AbortController()
    const begun = performance.now()
    const before = process.cpuUsage()
    await createPreviewEngine({ searchPath: '' }).render({ kind, input, folder, references, signal })
    const { user, system } = process.cpuUsage(before)
    const seconds = (performance.now() - begun) / 1000
    return [seconds, (user + system) / 1e6, process.resourceUsage().maxRSS / 1024]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function apart(mode: string, words: unknown): string {
  const options = [...process.execArgv, fileURLToPath(import.meta.url), mode, JSON.stringify(words)]
  const { stdout, stderr, status } = spawnSync(process.execPath, options, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return stdout
}

const [first = '', second = ''] = process.argv.slice(2)
if (first === '--make') {
  await make(JSON.parse(second))
} else if (first === 'service') {
  await measureService()
} else if (first === '--one') {
  console.log(JSON.stringify(await measure(JSON.parse(second))))
} else {
  console.log(`Node ${process.version}, ${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}\n`)
  console.log('| output | references | each kB | seconds | CPU s | peak MiB |\n|---|---|--:|--:|--:|--:|')
  for (const one of CASES.filter((each) => each.join(' ').includes(first))) {
    const [output, count, source] = one
    if (count > 0 && !existsSync(fileOf(source))) apart('--make', source)
    const kilobytes = count > 0 ? Math.ceil(readFileSync(fileOf(source)).byteLength / 1000) : 0
    const [seconds, cpu, peak] = JSON.parse(apart('--one', one))
    console.log(
      `| ${output} | ${count === 0 ? 'none' : `${count} x ${source}`} | ${kilobytes} | ${seconds.toFixed(1)} | ${cpu.toFixed(1)} | ${peak.toFixed(0)} |`,
    )
  }
}
