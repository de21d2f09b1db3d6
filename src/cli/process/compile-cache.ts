/**
 * Where it is kept what V8 made of the program. What lies there is run, so it is a folder of the user's own, and not one of
 * everybody's below the temporary one.
 */
import { posix, win32 } from 'node:path'
import { systemHome } from '../../host/platform-folders.js'

type Env = Readonly<Record<string, string | undefined>>

/** Undefined where there is no home, or a relative one: what depends on where the user happens to be may be anybody's. */
export function compileCacheFolder(
  env: Env,
  platform: NodeJS.Platform = process.platform,
  askSystem: () => string = systemHome,
): string | undefined {
  const { isAbsolute } = platform === 'win32' ? win32 : posix
  const folder = namedFolder(env, platform, askSystem)
  return folder !== undefined && isAbsolute(folder) ? folder : undefined
}

function namedFolder(env: Env, platform: NodeJS.Platform, askSystem: () => string): string | undefined {
  if (env.NODE_COMPILE_CACHE) return env.NODE_COMPILE_CACHE
  const { join } = platform === 'win32' ? win32 : posix
  const below = (...words: readonly string[]) => {
    const home = env.HOME || env.USERPROFILE || homeOf(askSystem)
    return home === undefined ? undefined : join(home, ...words)
  }
  if (platform === 'win32')
    return env.LOCALAPPDATA
      ? join(env.LOCALAPPDATA, 'rushes', 'compiled')
      : below('AppData', 'Local', 'rushes', 'compiled')
  if (platform === 'darwin') return below('Library', 'Caches', 'rushes')
  return env.XDG_CACHE_HOME?.startsWith('/') ? join(env.XDG_CACHE_HOME, 'rushes') : below('.cache', 'rushes')
}

function homeOf(askSystem: () => string): string | undefined {
  try {
    return askSystem()
  } catch {
    return undefined
  }
}
