/** The peers, installed by npm into a temporary folder. They are no dependencies of the project. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const PEERS = {
  replicate: '1.4.0',
  '@fal-ai/client': '1.10.1',
  'mmx-cli': '1.0.27',
  '@wavespeed/cli': '0.2.2',
} as const

export const named = (name: keyof typeof PEERS): string => `${name}@${PEERS[name]}`

/** How many seconds it took. Without the registry there is nothing to measure: this says so and ends the process. */
export async function install(folder: string, packages: readonly string[], cache?: string): Promise<number> {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}\n')
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', '--fetch-retries=1']
  const started = performance.now()
  const npm = spawn(
    'npm',
    ['install', ...quiet, ...(cache === undefined ? [] : ['--cache', cache]), ...packages],
    { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let said = ''
  npm.stderr.on('data', (text) => {
    said += text
  })
  const [code] = await once(npm, 'close')
  if (code !== 0) {
    console.error(
      `npm could not install ${packages.join(', ')}; the comparison needs a package registry.\n${said}`,
    )
    process.exit(1)
  }
  return (performance.now() - started) / 1_000
}
