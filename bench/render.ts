// Seconds and peak memory of the preview renderer, one child process per picture, so that nothing is warm and nothing is
// shared: `npm run bench -- render`. A word narrows it: `npm run bench -- render 1080p`. Prints Markdown tables.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createPreviewEngine } from '../src/preview/index.js'
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

const apart = (mode: string, job: unknown): string => {
  // The same loader flags as ours, whatever runs TypeScript here.
  const options = [...process.execArgv, fileURLToPath(import.meta.url), mode, JSON.stringify(job)]
  const { stdout, stderr, status } = spawnSync(process.execPath, options, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return stdout
}

const [first = '', job = ''] = process.argv.slice(2)
if (first === '--one') {
  console.log(JSON.stringify(await measure(JSON.parse(job))))
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
