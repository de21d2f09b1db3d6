/**
 * Downloads from loopback: `npm run bench -- download`. Seconds and peak memory of one download in a process of its own, by size;
 * then `rushes download` as a whole process and `curl`, in turns, from the same local service: one file of 1 GiB, and 200
 * small files. rushes asks for the run first, computes the SHA-256 of every file and syncs it to the disk before it gets its
 * name; curl does none of that. Prints Markdown tables.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { downloadInChild } from './download/process.js'
import { median } from './table.js'

const SIZES_MIB = [1, 300, 2_048]
const ROUNDS = 5
const BINARY = resolve('bin/rushes.cjs')
const ENGINES = {
  image: 'for i in $(seq 200); do head -c 100000 /dev/urandom > "$RUSHES_OUTPUT_DIR/$i.bin"; done',
  video: 'head -c 1073741824 /dev/urandom > "$RUSHES_OUTPUT_DIR/big.bin"',
}

async function alone(): Promise<void> {
  console.log('| size | seconds | peak MiB |\n|---|--:|--:|')
  for (const sizeMiB of SIZES_MIB) {
    const folder = mkdtempSync(join(tmpdir(), 'rushes-bench-'))
    try {
      const { ok, elapsedMs, peakMiB } = await downloadInChild(sizeMiB * 1_048_576, folder)
      if (!ok) throw new Error('the download failed')
      console.log(`| ${sizeMiB} MiB | ${(elapsedMs / 1_000).toFixed(2)} | ${Math.round(peakMiB)} |`)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

const home = mkdtempSync(join(tmpdir(), 'rushes-bench-'))
const env = { PATH: process.env.PATH, HOME: home }

async function startService() {
  const engines = Object.entries(ENGINES).flatMap(([kind, command]) => ['--engine', `${kind}=${command}`])
  const child = spawn(process.execPath, [BINARY, 'serve', '--port', '0', '--json', ...engines], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(child.stdout, 'data')
  const { url, api_key: key } = JSON.parse(String(line))
  return { child, url, key }
}

/** Seconds, and the peak memory of the process. */
async function timed(program: string, words: readonly string[], more: NodeJS.ProcessEnv, cwd: string) {
  const began = performance.now()
  const child = spawn(program, words, { env: { ...env, ...more }, cwd, stdio: 'ignore' })
  let peakKiB = 0
  const poll = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
      peakKiB = Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? peakKiB)
    } catch {
      // The process has ended, or this is not Linux.
    }
  }, 20)
  const [code] = await once(child, 'exit')
  clearInterval(poll)
  if (code !== 0) throw new Error(`${program} ended with ${code}`)
  return { seconds: (performance.now() - began) / 1_000, peakMiB: peakKiB / 1_024 }
}

interface Way {
  readonly name: string
  readonly program: string
  readonly words: readonly string[]
}

async function besideCurl(): Promise<void> {
  const { child, url, key } = await startService()
  const settings = { RUSHES_BASE_URL: url, RUSHES_API_KEY: key }
  const rushes = (...words: string[]) =>
    spawnSync(process.execPath, [BINARY, ...words], { env: { ...env, ...settings }, encoding: 'utf8' }).stdout
  console.log('| | | seconds | curl / it | peak MiB |\n|---|---|--:|--:|--:|')
  for (const [kind, name] of [
    ['video', '1 GiB, one file'],
    ['image', '200 files of 100 kB'],
  ] as const) {
    const made = rushes('run', kind, 'x', '--model', `rushes/preview-${kind}`, '--json')
    const { id, output } = JSON.parse(made) as { id: string; output: { urls: readonly string[] } }
    const ways: readonly Way[] = [
      { name: 'curl', program: 'curl', words: ['-sS', '--fail', '--remote-name-all', ...output.urls] },
      {
        name: 'rushes download',
        program: process.execPath,
        words: [BINARY, 'download', id, '-q', '-o', './{index}.{ext}'],
      },
    ]
    const found = new Map(ways.map((way) => [way, { seconds: [] as number[], peakMiB: 0 }]))
    for (let round = 0; round <= ROUNDS; round++)
      for (const [way, kept] of found) {
        const folder = mkdtempSync(join(home, 'files-'))
        const ran = await timed(way.program, way.words, settings, folder)
        if (readdirSync(folder).length !== output.urls.length)
          throw new Error(`${way.name} did not download every file`)
        rmSync(folder, { recursive: true, force: true })
        // The first round fills the disk's cache.
        if (round === 0) continue
        kept.seconds.push(ran.seconds)
        kept.peakMiB = Math.max(kept.peakMiB, ran.peakMiB)
      }
    const medians = [...found].map(([way, { seconds, peakMiB }]) => ({ way, took: median(seconds), peakMiB }))
    for (const { way, took, peakMiB } of medians)
      console.log(
        `| ${name} | ${way.name} | ${took.toFixed(2)} | ${((medians[0]?.took ?? 0) / took).toFixed(2)} ` +
          `| ${Math.round(peakMiB)} |`,
      )
  }
  child.kill('SIGTERM')
  await once(child, 'exit')
}

try {
  await alone()
  await besideCurl()
} finally {
  rmSync(home, { recursive: true, force: true })
}
