/**
 * Downloads from loopback: `npm run bench:download`. Seconds and peak memory of one download in a process of its own, by
 * size; then `rushes download` as a whole process beside `curl`, from the same local service, taking turns: one gibibyte, and
 * 200 small files. rushes looks at the run first, takes the SHA-256 of everything and has it on the disk before it names it;
 * curl does none of that. Prints Markdown tables.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { downloadInChild } from '../test/download/big.js'
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

/** Seconds, and the most memory that the process ever had. */
async function timed(program: string, words: readonly string[], more: NodeJS.ProcessEnv, cwd: string) {
  const began = performance.now()
  const child = spawn(program, words, { env: { ...env, ...more }, cwd, stdio: 'ignore' })
  let peakKiB = 0
  const look = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
      peakKiB = Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? peakKiB)
    } catch {
      // It has ended, or this is no Linux.
    }
  }, 20)
  const [code] = await once(child, 'exit')
  clearInterval(look)
  if (code !== 0) throw new Error(`${program} ended with ${code}`)
  return { seconds: (performance.now() - began) / 1_000, peakMiB: peakKiB / 1_024 }
}

async function besideCurl(): Promise<void> {
  const { child, url, key } = await startService()
  const settings = { RUSHES_BASE_URL: url, RUSHES_API_KEY: key }
  const rushes = (...words: string[]) =>
    spawnSync(process.execPath, [BINARY, ...words], { env: { ...env, ...settings }, encoding: 'utf8' }).stdout
  console.log('| | rushes s | curl s | curl / rushes | peak MiB of rushes |\n|---|--:|--:|--:|--:|')
  for (const [kind, name] of [
    ['video', '1 GiB, one file'],
    ['image', '200 files of 100 kB'],
  ] as const) {
    const made = rushes('run', kind, 'x', '--model', `rushes/preview-${kind}`, '--json')
    const { id, output } = JSON.parse(made) as { id: string; output: { urls: readonly string[] } }
    const found: Record<'rushes' | 'curl', number[]> = { rushes: [], curl: [] }
    let peakMiB = 0
    const ways = {
      rushes: [process.execPath, [BINARY, 'download', id, '-q', '-o', './{index}.{ext}']],
      curl: ['curl', ['-sS', '--fail', '--remote-name-all', ...output.urls]],
    } as const
    for (let round = 0; round <= ROUNDS; round++)
      for (const way of ['rushes', 'curl'] as const) {
        const folder = mkdtempSync(join(home, 'files-'))
        const [program, words] = ways[way]
        const ran = await timed(program, words, settings, folder)
        if (readdirSync(folder).length !== output.urls.length) throw new Error(`${way} left files out`)
        rmSync(folder, { recursive: true, force: true })
        // The first round warms the disk's cache.
        if (round === 0) continue
        found[way].push(ran.seconds)
        if (way === 'rushes') peakMiB = Math.max(peakMiB, ran.peakMiB)
      }
    const [ours, theirs] = [median(found.rushes), median(found.curl)]
    console.log(
      `| ${name} | ${ours.toFixed(2)} | ${theirs.toFixed(2)} | ${(theirs / ours).toFixed(2)} | ${Math.round(peakMiB)} |`,
    )
  }
  child.kill('SIGTERM')
  await once(child, 'exit')
}

try {
  if (process.argv[2] !== 'curl') await alone()
  await besideCurl()
} finally {
  rmSync(home, { recursive: true, force: true })
}
