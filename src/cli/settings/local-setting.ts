import type { Globals } from '../flags/globals.js'
import type { Env } from '../process/io.js'
import { findSetting, isOn, variable } from './table.js'

export interface LocalSources {
  readonly globals: Pick<Globals, 'local' | 'baseUrl'>
  readonly env: Env
  /** The values of the profile by config key; read only where flags and environment do not decide. */
  file(): Promise<Readonly<Record<string, string>>>
}

/** Whether a command works with the local service: by `--local`, RUSHES_LOCAL or the setting `local`. Throws `usage`. */
export async function isLocal({ globals, env, file }: LocalSources): Promise<boolean> {
  if (globals.local || globals.baseUrl !== undefined) return globals.local
  const fromEnvironment = variable(env, 'RUSHES_LOCAL')
  if (fromEnvironment !== undefined) return isOn(fromEnvironment, 'RUSHES_LOCAL')
  // The environment overrides the config file.
  if (variable(env, 'RUSHES_BASE_URL') !== undefined) return false
  const found = findSetting('local', { env, file: await file() })
  return found !== undefined && isOn(found.value)
}
