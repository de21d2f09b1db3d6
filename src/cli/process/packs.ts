/**
 * How the program loads itself: the build puts the chunks that commands share into a few packs, and what V8 made of a pack
 * is kept in the user's cache folder for the next time. Reading many small files and compiling them takes Node longer than
 * running them. Loaded before anything else, so the build bundles it with `start.ts`, and with its own copy of what it imports.
 */
import {
  closeSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { Script } from 'node:vm'
import { EXIT } from '../../errors.js'
import { makeFolders } from '../../host/directories.js'
import { compileAsUsual } from '../../host/webassembly.js'
import { compileCacheFolder } from './compile-cache.js'

interface Module {
  exports: unknown
}

/** The code of a chunk, as Node would run it. */
type Chunk = (module: Module, exports: unknown) => void
type Pack = Readonly<Record<string, Chunk>>

const packs = new Map<string, Pack>()
const modules = new Map<string, Module>()

/** What the chunk `name` of the pack in the file `pack` exports. Written by the build in the place of `require`. */
export function part(pack: string, name: string): unknown {
  const known = modules.get(name)
  if (known !== undefined) return known.exports
  const chunk = packOf(pack)[name]
  if (chunk === undefined) throw new Error(`${pack} holds no ${name}: this installation is broken`)
  const module: Module = { exports: {} }
  modules.set(name, module)
  try {
    chunk(module, module.exports)
  } catch (error) {
    // The next who asks is told as well.
    modules.delete(name)
    throw error
  }
  return module.exports
}

function packOf(name: string): Pack {
  let pack = packs.get(name)
  if (pack === undefined) {
    pack = open(name)
    packs.set(name, pack)
  }
  return pack
}

function open(name: string): Pack {
  const folder = keptIn(process.env)
  if (folder === undefined) return require(`./${name}`) as Pack
  const filename = join(__dirname, name)
  const file = join(folder, `${name}.${commandWord(process.argv)}`)
  const cachedData = readKept(file)
  // Loaded here, since the version is told without.
  const vm = process.getBuiltinModule('node:vm')
  const script = new vm.Script(
    `(function (module, require) {${readFileSync(filename).toString('latin1')}\n})`,
    {
      filename,
      ...(cachedData !== undefined && { cachedData }),
    },
  )
  if (cachedData === undefined || script.cachedDataRejected === true)
    process.once('exit', (code) => {
      // What was mistyped is no command.
      if (code !== EXIT.usage) keep(file, script)
    })
  const module: Module = { exports: undefined }
  script.runInThisContext()(module, require)
  return module.exports as Pack
}

/**
 * Undefined where nothing is kept. What V8 was told by flags becomes a part of what it keeps, so a process that has its own
 * would only replace what the others made.
 */
function keptIn(env: NodeJS.ProcessEnv): string | undefined {
  if (env.NODE_DISABLE_COMPILE_CACHE || env.NODE_OPTIONS || process.execArgv.length > 0) return undefined
  const folder = compileCacheFolder(env)
  return folder && join(folder, `${process.version}-${process.arch}`)
}

/** What is kept has the functions that ran: others for each command, and fewer for its help. */
function commandWord([, , word = '', ...more]: readonly string[]): string {
  if (more.includes('--help') || more.includes('-h')) return 'help'
  return /^[a-z_]{1,20}$/.test(word) ? word : 'none'
}

const isOwn = ({ uid, mode }: Stats): boolean =>
  process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0)

/**
 * Undefined when there is nothing, it is not this user's, or it is not what was written. V8 looks at the length alone, and dies
 * of what is not its own. So it is kept twice in its file: comparing all of it takes less than any sum of a part.
 */
function readKept(file: string): Buffer | undefined {
  try {
    const handle = openSync(file, 'r')
    try {
      const stats = fstatSync(handle)
      const bytes = Buffer.allocUnsafeSlow(stats.size)
      if (!isOwn(stats) || readSync(handle, bytes) !== stats.size) return undefined
      const code = bytes.subarray(0, stats.size >> 1)
      return code.length > 0 && code.equals(bytes.subarray(code.length)) ? code : undefined
    } finally {
      closeSync(handle)
    }
  } catch {
    return undefined
  }
}

function remove(path: string): void {
  try {
    rmSync(path)
  } catch {
    // It was not there, or stays.
  }
}

const DAY_MS = 86_400_000
/** What an earlier version left goes, and what is still used is made again. */
const KEPT_MS = 90 * DAY_MS

/** Where it cannot be kept, the next start takes longer, and that is all. */
function keep(file: string, script: Script): void {
  const folder = dirname(file)
  try {
    compileAsUsual()
    makeFolders(folder, 0o700)
    if (!isOwn(statSync(folder))) return
    const code = script.createCachedData()
    writeWhole(file, Buffer.concat([code, code]))
    for (const name of readdirSync(folder)) {
      const path = join(folder, name)
      if (Date.now() - statSync(path).mtimeMs > KEPT_MS) remove(path)
    }
  } catch {
    // Nor where the folder is none, or its disk is full.
  }
}

/** Under its name when it is whole. What a failure of the machine makes of it is seen when it is read. */
function writeWhole(file: string, bytes: Buffer): void {
  // Processes of two containers may have one id.
  const fresh = `${file}.${process.pid}-${process.hrtime.bigint().toString(36)}`
  try {
    writeFileSync(fresh, bytes, { flag: 'wx', mode: 0o600 })
    renameSync(fresh, file)
  } catch (error) {
    remove(fresh)
    throw error
  }
}
