/** The platform's folders for settings and state. */
import { posix, win32 } from 'node:path'

type Env = Readonly<Record<string, string | undefined>>

export interface Folders {
  readonly config: string
  readonly state: string
}

/**
 * XDG on Linux, `~/Library` on macOS, `%APPDATA%` and `%LOCALAPPDATA%` on Windows. An XDG variable that is not an
 * absolute path is ignored, as its specification asks.
 */
export function platformFolders(
  name: string,
  env: Env,
  platform: NodeJS.Platform = process.platform,
  askSystem: () => string = systemHome,
): Folders {
  const { join, resolve } = platform === 'win32' ? win32 : posix
  const home = env.HOME || env.USERPROFILE || homeOf(askSystem)
  if (platform === 'darwin')
    return {
      config: join(home, 'Library', 'Preferences', name),
      state: join(home, 'Library', 'Application Support', name),
    }
  if (platform === 'win32')
    return {
      config: join(env.APPDATA || join(home, 'AppData', 'Roaming'), name),
      state: join(env.LOCALAPPDATA || join(home, 'AppData', 'Local'), name),
    }
  const xdg = (value: string | undefined, ...otherwise: string[]) =>
    value?.startsWith('/') ? value : join(home, ...otherwise)
  return {
    config: resolve(xdg(env.XDG_CONFIG_HOME, '.config'), name),
    state: resolve(xdg(env.XDG_STATE_HOME, '.local', 'state'), name),
  }
}

/** Loads `node:os` only when the variables do not tell the home folder. */
export const systemHome = (): string => process.getBuiltinModule('node:os').homedir()

/** Node throws for a user id without an account; container engines use `/` then, and so do we. */
function homeOf(askSystem: () => string): string {
  try {
    return askSystem()
  } catch {
    return '/'
  }
}
