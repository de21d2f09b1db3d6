/** Finds Firefox on this machine, for tests. */
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const NAMES = ['firefox', 'firefox-esr']

/** Returns FIREFOX_PATH, else the first Firefox on PATH. */
export function findFirefox(env: NodeJS.ProcessEnv = process.env): string | undefined {
  if (env.FIREFOX_PATH !== undefined && env.FIREFOX_PATH !== '') return env.FIREFOX_PATH
  const folders = ['/usr/bin', ...(env.PATH ?? '').split(delimiter)]
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find((path) => existsSync(path))
}
