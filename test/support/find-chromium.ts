/** Finds Chromium on this machine, for tests and benchmarks. */
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** Returns CHROME_PATH, else the first Chromium on PATH. */
export function findChromium(env: NodeJS.ProcessEnv = process.env): string | undefined {
  if (env.CHROME_PATH !== undefined && env.CHROME_PATH !== '') return env.CHROME_PATH
  const folders = ['/usr/bin', ...(env.PATH ?? '').split(delimiter)]
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find((path) => existsSync(path))
}
