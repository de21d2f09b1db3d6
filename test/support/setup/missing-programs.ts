/** Names the parts that are not installed, whose tests are skipped. */
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { findChromium } from '../find-chromium.js'
import { hasPostgres } from '../postgres-server.js'

const PROGRAMS = ['nginx', 'psql', 'pgbouncer', 'jq', 'make', 'python3', 'ffmpeg', 'ffprobe']

export default function setup(): void {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  const missing = PROGRAMS.filter((name) => !folders.some((folder) => existsSync(join(folder, name))))
  if (findChromium() === undefined) missing.push('chromium (or CHROME_PATH)')
  if (!hasPostgres) missing.push('PostgreSQL (test/engines, or PG_URL)')
  if (missing.length > 0)
    process.stdout.write(`Not installed, so that their tests are skipped: ${missing.join(', ')}\n`)
}
