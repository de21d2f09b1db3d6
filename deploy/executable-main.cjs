// The entry point of the single-file executable (executable.mjs). Native packages and worker threads need files, so the first
// start of a version writes them into a private folder. Each start checks them, and runs the program from there.
const { createHash } = require('node:crypto')
const fs = require('node:fs')
const { createRequire, enableCompileCache } = require('node:module')
const { homedir } = require('node:os')
const { basename, dirname, join } = require('node:path')
const { getAsset, getRawAsset } = require('node:sea')

const { env, platform } = process
/** The version with a hash of all files, and the SHA-256 of each file. */
const { id, files } = JSON.parse(getAsset('files.json', 'utf8'))
/** Sizes, times and inodes of the files when their hashes were compared. */
const STAMP = '.checked'

class Unusable extends Error {}

try {
  start()
} catch (error) {
  if (!(error instanceof Unusable)) throw error
  process.stderr.write(
    `error: ${error.message}\n  Set XDG_CACHE_HOME to a folder that only you can write to.\n`,
  )
  process.exitCode = 2
}

function start() {
  enableCompileCache?.()
  const [, , script = ''] = process.argv
  const own = dirname(dirname(script))
  // A child process of the program gets a script. Its environment may have no home folder.
  if (basename(own) === id && Object.hasOwn(files, `dist/${basename(script)}`)) {
    process.argv.splice(1, 1)
    createRequire(script)(join(prepare(dirname(own)), 'dist', basename(script)))
  } else {
    const program = join(prepare(join(cacheFolder(), 'rushes')), 'dist', 'rushes.cjs')
    createRequire(program)(program).start()
  }
}

function cacheFolder() {
  if (env.XDG_CACHE_HOME) return env.XDG_CACHE_HOME
  if (platform === 'darwin') return join(homedir(), 'Library', 'Caches')
  if (platform === 'win32') return env.LOCALAPPDATA || join(homedir(), 'AppData', 'Local')
  return join(homedir(), '.cache')
}

/** Returns the folder with the files of this version. */
function prepare(base) {
  try {
    fs.mkdirSync(base, { recursive: true, mode: 0o700 })
    const real = fs.realpathSync(base)
    assertPrivate(real)
    const folder = join(real, id)
    if (!isWhole(folder)) extract(real, folder)
    return folder
  } catch (error) {
    if (error instanceof Unusable) throw error
    throw new Unusable(
      `${base}: the files of the program cannot be written (${error.code ?? error.message}).`,
    )
  }
}

/** Nobody else may replace the folder, or a folder that contains it. */
function assertPrivate(base) {
  if (platform === 'win32') return
  for (let path = base; ; path = dirname(path)) {
    const { uid, mode } = fs.statSync(path)
    const isOwn = uid === process.getuid() || (uid === 0 && path !== base)
    // With the sticky bit, others cannot rename what is not theirs.
    const isOpen = (mode & 0o022) !== 0 && (path === base || (mode & 0o1000) === 0)
    if (!isOwn || isOpen)
      throw new Unusable(`${path}: other users can change this folder, and the program would run from it.`)
    if (path === dirname(path)) return
  }
}

/** Compares the hashes, and later only whether a file was changed since: hashing takes 100 ms. */
function isWhole(folder) {
  try {
    const stamp = stampOf(folder)
    if (fs.existsSync(join(folder, STAMP)) && fs.readFileSync(join(folder, STAMP), 'utf8') === stamp)
      return true
    for (const [name, sha256] of Object.entries(files))
      if (
        createHash('sha256')
          .update(fs.readFileSync(join(folder, name)))
          .digest('base64url') !== sha256
      )
        return false
    fs.writeFileSync(join(folder, STAMP), stamp, { mode: 0o600 })
    return true
  } catch {
    return false
  }
}

function stampOf(folder) {
  const lines = Object.keys(files).map((name) => {
    const { size, ctimeMs, ino } = fs.lstatSync(join(folder, name))
    return `${size} ${ctimeMs} ${ino}`
  })
  return lines.join('\n')
}

/** Writes into a new folder and renames it, so that a process which starts meanwhile finds all files or none. */
function extract(base, folder) {
  const made = fs.mkdtempSync(join(base, '.new-'))
  try {
    for (const name of Object.keys(files)) {
      fs.mkdirSync(dirname(join(made, name)), { recursive: true, mode: 0o700 })
      fs.writeFileSync(join(made, name), Buffer.from(getRawAsset(name)), { mode: 0o600 })
    }
    if (!isWhole(made)) throw new Unusable(`${made}: the files of the program could not be written.`)
    if (fs.existsSync(folder) && !isWhole(folder)) fs.renameSync(folder, join(made, '.damaged'))
    fs.renameSync(made, folder)
    fs.rmSync(join(folder, '.damaged'), { recursive: true, force: true })
  } catch (error) {
    // Another process may have been first.
    if (!isWhole(folder)) throw error
  } finally {
    fs.rmSync(made, { recursive: true, force: true })
  }
}
