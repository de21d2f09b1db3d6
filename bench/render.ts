// Seconds and peak memory of the preview renderer, one child process per picture, so that nothing is warm and nothing is
// shared: `npm run bench:render`. A word narrows it: `npm run bench:render -- 1080p`. Prints Markdown tables.
//
// `npm run bench:render -- ratio` measures films alone: how long the whole render takes as a multiple of what its encoder
// needs for the very same frames when they lie ready in memory, with an ffmpeg (where there is one) and without; a word
// after it narrows that too.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createPreviewEngine } from '../src/preview/index.js'
import { videoRequest } from '../src/preview/render-request.js'
import { findFfmpeg, openFfmpeg } from '../src/preview/video/ffmpeg-encoder.js'
import { prepareFilm, shoot } from '../src/preview/video/film.js'
import { openWasmEncoder } from '../src/preview/video/wasm-encoder.js'
import type { Kind } from '../src/protocol/models.js'

interface Case {
  readonly kind: Kind
  readonly input: Readonly<Record<string, string>>
}

interface Measurement {
  readonly seconds: number
  readonly peakMebibytes: number
  readonly bytes: number
}

// A forest is the renderer's worst case: many edges, so that little of a frame can be skipped.
const PROMPT = 'a red fox crosses a snowy forest at dusk, wide shot, soft light'

const IMAGES: readonly Case[] = ['basic', 'high'].flatMap((quality) =>
  ['1:1', '2:3', '3:2', '3:4', '4:3', '9:16', '16:9', '21:9'].map((aspect_ratio) => ({
    kind: 'image' as const,
    input: { prompt: PROMPT, aspect_ratio, quality },
  })),
)

const VIDEOS: readonly Case[] = ['720p', '1080p'].flatMap((resolution) =>
  ['5', '10'].flatMap((duration) =>
    ['16:9', '9:16', '4:3', '3:4', '1:1', '21:9'].map((aspect_ratio) => ({
      kind: 'video' as const,
      input: { prompt: PROMPT, aspect_ratio, resolution, duration },
    })),
  ),
)

const nameOf = ({ kind, input: { prompt: _, ...rest } }: Case) => [kind, ...Object.values(rest)].join(' ')

async function measure(job: Case): Promise<Measurement> {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-bench-'))
  try {
    const started = performance.now()
    const signal = new AbortController().signal
    const [file] = await createPreviewEngine().render({ ...job, folder, references: [], signal })
    const seconds = (performance.now() - started) / 1000
    const bytes = statSync(join(folder, file?.name ?? '')).size
    return { seconds, peakMebibytes: process.resourceUsage().maxRSS / 1024, bytes }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The whole render, and then the same frames through the same kind of encoder, with nothing else to do. */
async function measureRatio(job: Case & { readonly searchPath: string }): Promise<readonly [number, number]> {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-bench-'))
  try {
    const whole = { ...job, folder, references: [], signal: new AbortController().signal }
    const started = performance.now()
    await createPreviewEngine({ searchPath: job.searchPath }).render(whole)
    const render = performance.now() - started

    const film = await prepareFilm(videoRequest(job.input), whole)
    const frames: Uint8Array[] = []
    const bytes = (film.size.width * film.size.height * 3) / 2
    await shoot(
      film,
      { free: async () => new Uint8Array(bytes), add: (frame) => void frames.push(frame) },
      whole,
    )
    const program = findFfmpeg(job.searchPath)
    const begun = performance.now()
    const encoder = program === undefined ? openWasmEncoder(film.size) : openFfmpeg(program, film.size)
    for (const frame of frames) {
      const free = await encoder.free()
      free.set(frame)
      encoder.add(free)
    }
    await encoder.finish()
    const encode = performance.now() - begun
    encoder.end()
    return [render / 1000, encode / 1000]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const apart = (mode: string, job: unknown): string => {
  // The same loader flags as ours, whatever runs TypeScript here.
  const options = [...process.execArgv, fileURLToPath(import.meta.url), mode, JSON.stringify(job)]
  const { stdout, stderr, status } = spawnSync(process.execPath, options, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return stdout
}

const [first = '', second = ''] = process.argv.slice(2)
if (first === '--one') {
  console.log(JSON.stringify(await measure(JSON.parse(second))))
} else if (first === '--ratio') {
  console.log(JSON.stringify(await measureRatio(JSON.parse(second))))
} else if (first === 'ratio') {
  console.log('| film | encoder | render s | encoder alone s | ratio |\n|---|---|--:|--:|--:|')
  for (const job of VIDEOS.filter(
    (row) => ['16:9', '9:16'].includes(row.input.aspect_ratio ?? '') && nameOf(row).includes(second),
  )) {
    for (const searchPath of ['', process.env.PATH ?? '']) {
      if (searchPath !== '' && findFfmpeg(searchPath) === undefined) continue
      const [render, encode] = JSON.parse(apart('--ratio', { ...job, searchPath }))
      const name = searchPath === '' ? 'h264-mp4-encoder' : 'ffmpeg, libx264'
      console.log(
        `| ${nameOf(job)} | ${name} | ${render.toFixed(2)} | ${encode.toFixed(2)} | ${(render / encode).toFixed(2)} |`,
      )
    }
  }
} else {
  console.log(`Node ${process.version}, ${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}\n`)
  console.log('| picture | seconds | peak MiB | file kB |\n|---|--:|--:|--:|')
  for (const job of [...IMAGES, ...VIDEOS].filter((row) => nameOf(row).includes(first))) {
    const { seconds, peakMebibytes, bytes } = JSON.parse(apart('--one', job)) as Measurement
    console.log(
      `| ${nameOf(job)} | ${seconds.toFixed(2)} | ${peakMebibytes.toFixed(0)} | ${Math.round(bytes / 1000)} |`,
    )
  }
}
