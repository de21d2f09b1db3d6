/** Folders that other programs touch. Everything here is in folders that the tests made. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  FolderNotRemoved,
  FolderReplaced,
  ForeignFile,
  holdFolder,
  makeOwnFolder,
  makeOwnFolderAt,
  type OwnFolder,
  removeFolder,
} from '../../src/host/own-folder.js'
import { built } from '../support/built.js'
import { temporaryFolder } from '../support/temporary-folder.js'

let script: string
beforeAll(async () => {
  script = await built(new URL('./own-folder-process.ts', import.meta.url))
})

const isRoot = process.getuid?.() === 0
const NOBODY = 65_534
const ANYBODY = ['--reuid', `${NOBODY}`, '--regid', `${NOBODY}`, '--clear-groups']
const canBeAnybody = isRoot && spawnSync('setpriv', [...ANYBODY, process.execPath, '--version']).status === 0
/** A namespace in which a test may mount; it is gone with its process. */
const canMount = spawnSync('unshare', ['-Urm', 'true']).status === 0

/** As containers have one: its folders have another device than its files. Goes into it. */
const overlayIn = (folder: string): string =>
  `cd '${folder}' && mkdir lower upper merged && mount -t tmpfs none lower && mount -t tmpfs none upper && mkdir upper/files upper/work && \
mount -t overlay none -o lowerdir=lower,upperdir=upper/files,workdir=upper/work,userxattr merged && cd merged`
const canOverlay =
  canMount &&
  spawnSync('unshare', ['-Urm', 'sh', '-c', `mount -t tmpfs none /tmp && ${overlayIn('/tmp')}`]).status === 0

/** A folder outside of that of the test, and what must stay as it is. */
function outside(): { readonly path: string; state(): unknown } {
  const path = join(temporaryFolder(), 'outside')
  mkdirSync(join(path, 'sub'), { recursive: true, mode: 0o755 })
  for (const name of ['sentinel', '.hidden', 'sub/deep'])
    writeFileSync(join(path, name), name, { mode: 0o644 })
  const state = () =>
    (readdirSync(path, { recursive: true }) as string[]).sort().map((name) => {
      const { mode, nlink, size } = statSync(join(path, name))
      return { name, mode, nlink, size }
    })
  const before = state()
  expect(before).toHaveLength(4)
  onTestFinished(() => expect(state()).toEqual(before))
  return { path, state }
}

async function ownFolder(): Promise<OwnFolder> {
  const folder = await makeOwnFolder(temporaryFolder(), 'own-')
  onTestFinished(() => folder.close())
  return folder
}

/** With files, hidden files, empty and full folders. */
function fill(path: string): void {
  mkdirSync(join(path, 'a/b/c'), { recursive: true })
  mkdirSync(join(path, 'empty'), { recursive: true })
  for (const name of ['one', '.two', 'a/three', 'a/b/c/.four']) writeFileSync(join(path, name), 'x')
}

const inProcess = (...words: readonly string[]) =>
  execFileSync(process.execPath, [script, ...words], { encoding: 'utf8' })

test('a folder is private, and gone with all that is in it', async () => {
  const folder = await ownFolder()
  expect(statSync(folder.path).mode & 0o777).toBe(0o700)
  fill(folder.path)
  expect([...(await folder.names())].sort()).toEqual(['.two', 'a', 'empty', 'one'])
  await folder.remove()
  expect(existsSync(folder.path)).toBe(false)
  const again = await makeOwnFolderAt(folder.path)
  await expect(makeOwnFolderAt(folder.path)).rejects.toThrow('EEXIST')
  rmdirSync(folder.path)
  // Somebody else has removed it: that is no error.
  await again.remove()
  await removeFolder(folder.path)
})

const makeOther = (path: string): void => {
  mkdirSync(path)
  writeFileSync(join(path, 'results'), 'x')
}
const makeTheirs = (path: string): void => {
  makeOther(path)
  chownSync(path, NOBODY, NOBODY)
}

/** What a program may put in place of the folder, and what is said of it. */
const REPLACEMENTS: readonly (readonly [string, string, (path: string, outside: string) => void, boolean])[] =
  [
    ['a link', 'a link', (path, other) => symlinkSync(other, path), true],
    ['a link to nothing', 'a link', (path) => symlinkSync('/nowhere/at/all', path), true],
    ['a link to where the folder was moved', 'a link', (path) => symlinkSync(`${path}-moved`, path), true],
    ['a file', 'a file', (path) => writeFileSync(path, 'x'), true],
    ['another folder', 'another folder', makeOther, true],
    ['a folder of another user', 'a folder of another user', makeTheirs, isRoot],
  ]

test.each(REPLACEMENTS.filter(([, , , isPossible]) => isPossible))(
  'in place of the folder: %s: nothing is read or removed',
  async (_name, found, replace) => {
    const other = outside()
    const folder = await ownFolder()
    fill(folder.path)
    renameSync(folder.path, `${folder.path}-moved`)
    replace(folder.path, other.path)
    const isLink = found === 'a link'
    const before = isLink ? readlinkSync(folder.path) : undefined
    for (const deed of [folder.check, folder.names, folder.remove])
      await expect(deed()).rejects.toMatchObject({ name: 'FolderReplaced', found, path: folder.path })
    // Also what was moved away stays: somebody may have wanted it there.
    expect(readdirSync(`${folder.path}-moved`).sort()).toEqual(['.two', 'a', 'empty', 'one'])
    if (isLink) expect(readlinkSync(folder.path)).toBe(before)
    else if (found !== 'a file') expect(readdirSync(folder.path)).toEqual(['results'])
    expect(new FolderReplaced(folder.path, found).message).not.toContain(folder.path)
  },
)

test('a folder that is gone cannot be read', async () => {
  const folder = await ownFolder()
  rmdirSync(folder.path)
  await expect(folder.names()).rejects.toMatchObject({ found: 'nothing' })
})

test.runIf(isRoot)('the folder itself, given to another user, is no longer our own', async () => {
  const folder = await ownFolder()
  chownSync(folder.path, NOBODY, NOBODY)
  await expect(folder.check()).rejects.toMatchObject({ found: 'a folder of another user' })
})

describe('by its path', () => {
  test.each([
    ['a link', (path: string, other: string) => symlinkSync(other, path)],
    ['a file', (path: string) => writeFileSync(path, 'x')],
  ])('%s in its place stays', async (found, put) => {
    const other = outside()
    const path = join(temporaryFolder(), 'worker')
    put(path, other.path)
    await expect(removeFolder(path)).rejects.toMatchObject({ name: 'FolderReplaced', found, path })
    expect(existsSync(path)).toBe(true)
  })

  test.runIf(isRoot)('a folder of another user stays, unless all of its parent is theirs', async () => {
    const path = join(temporaryFolder(), 'data', 'worker')
    fill(path)
    chownSync(path, NOBODY, NOBODY)
    await expect(removeFolder(path)).rejects.toMatchObject({ found: 'a folder of another user' })
    expect(readdirSync(path)).toHaveLength(4)
    chownSync(dirname(path), NOBODY, NOBODY)
    await removeFolder(path)
    expect(existsSync(path)).toBe(false)
  })
})

test('links in it are removed, and not followed', async () => {
  const other = outside()
  const folder = await ownFolder()
  mkdirSync(join(folder.path, 'a'))
  for (const name of ['link', '.link', 'a/link']) symlinkSync(other.path, join(folder.path, name))
  symlinkSync(join(other.path, 'sentinel'), join(folder.path, 'a/file-link'))
  symlinkSync('.', join(folder.path, 'a/circle'))
  await folder.remove()
  expect(existsSync(folder.path)).toBe(false)
})

test('a folder that is deeper than a path may be long is removed', async () => {
  const folder = await ownFolder()
  // From the inside: the path of the last folder has 4,500 bytes, Linux allows 4,096.
  const [inner, around] = [join(folder.path, 'inner'), join(folder.path, 'around')]
  mkdirSync(inner)
  for (let depth = 0; depth < 750; depth++) {
    mkdirSync(around)
    renameSync(inner, join(around, 'inner'))
    writeFileSync(join(around, 'file'), 'x')
    renameSync(around, inner)
  }
  await folder.remove()
  expect(existsSync(folder.path)).toBe(false)
})

test.skipIf(isRoot && !canBeAnybody)('folders without permissions are removed where they are our own', () => {
  const parent = join(temporaryFolder(), 'data')
  const path = join(parent, 'own')
  fill(path)
  writeFileSync(join(path, 'a/b/read-only'), 'x', { mode: 0 })
  for (const name of ['a/b/c', 'a/b', 'a', 'empty', '.']) chmodSync(join(path, name), 0)
  if (!isRoot) return expect(inProcess('remove', path)).toBe('done\n')
  // Permissions do not concern root. The script must be where anybody can read it.
  const readable = join(temporaryFolder(), 'entry.mjs')
  copyFileSync(script, readable)
  for (const folder of [readable, parent]) chmodSync(dirname(folder), 0o755)
  execFileSync('chown', ['-hR', `${NOBODY}`, parent])
  const said = execFileSync('setpriv', [...ANYBODY, process.execPath, readable, 'remove', path], {
    encoding: 'utf8',
  })
  expect(said).toBe('done\n')
  expect(existsSync(path)).toBe(false)
})

/** In a namespace of its own: `prepare`, then the script. */
const inNamespace = (prepare: string, ...words: readonly string[]): string =>
  execFileSync(
    'unshare',
    ['-Urm', 'sh', '-c', `${prepare}; exec "$@"`, 'sh', process.execPath, script, ...words],
    { encoding: 'utf8' },
  )

describe.runIf(canMount)('a mount', () => {
  test.each([
    ['of the same file system', (path: string, other: string) => `mount --bind '${other}' '${path}'`],
    ['of another one', (path: string) => `mount -t tmpfs none '${path}'; echo x > '${path}/sentinel'`],
  ])('%s in the folder is left, and said', (_name, mount) => {
    const other = outside()
    const path = join(temporaryFolder(), 'own')
    fill(path)
    for (const at of ['empty', 'a/b/c']) {
      const said = inNamespace(mount(join(path, at), other.path), 'remove', path)
      expect(said).toBe('The folder could not be removed: a file system is mounted in it\n')
      // All else is gone.
      expect(existsSync(join(path, 'one'))).toBe(false)
      fill(path)
    }
  })

  test.each([
    ['bind', 'mount --bind', 'another folder'],
    ['tmpfs', 'mount -t tmpfs', 'a folder on another file system'],
  ])('in place of the folder (%s) is left', (_name, mount, found) => {
    const other = outside()
    const path = join(temporaryFolder(), 'own')
    mkdirSync(path)
    const said = inNamespace(`${mount} '${other.path}' '${path}'`, 'remove', path)
    expect(said).toBe(`There is ${found} in place of the folder. (FolderReplaced)\n`)
  })

  test('of a file is not taken for one of the folder', () => {
    const other = outside()
    const path = join(temporaryFolder(), 'own')
    fill(path)
    const said = inNamespace(`mount --bind '${other.path}/sentinel' '${path}/one'`, 'use', path)
    expect(said).toBe('one is a mount. (ForeignFile)\n')
  })

  test.runIf(canOverlay)(
    'of an overlay whose layers are two file systems is one, whatever its devices',
    () => {
      const at = temporaryFolder()
      const prepare = `${overlayIn(at)} && mkdir own && echo x > own/one`
      expect(inNamespace(prepare, 'use', `${at}/merged/own`)).toBe('done\n')
    },
  )

  test('over /proc leads to no link in the folder, which is compared by its path as on other systems', () => {
    const other = outside()
    const path = join(temporaryFolder(), 'own')
    fill(path)
    for (const at of ['', 'a', 'a/b']) symlinkSync(other.path, join(path, at, 'link'))
    expect(inNamespace('mount -t tmpfs none /proc', 'remove', path)).toBe('done\n')
    expect(existsSync(path)).toBe(false)
    mkdirSync(path)
    writeFileSync(join(path, 'file'), 'x')
    expect(inNamespace('mount -t tmpfs none /proc', 'use', path)).toBe('done\n')
    symlinkSync(other.path, path)
    const said = inNamespace('mount -t tmpfs none /proc', 'remove', path)
    expect(said).toBe('There is a link in place of the folder. (FolderReplaced)\n')
    unlinkSync(path)
  })
})

/** A process that swaps a folder for a link without a pause. */
async function swapping(path: string, other: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [script, 'swap', path, other], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await new Promise((resolve) => child.stdout?.once('data', resolve))
  return child
}

test.runIf(process.platform === 'linux').each([
  ['the folder', ''],
  ['a folder in it', 'inner'],
])('%s is swapped for a link all the time: nothing outside is touched', async (_name, inner) => {
  const other = outside()
  // Names that the outside has too, so that a step that is led there would remove them.
  const names = ['sentinel', '.hidden', 'sub/deep']
  const parent = temporaryFolder()
  const path = join(parent, 'own')
  await swapping(join(path, inner), other.path)
  let removed = 0
  // The swapping process may not run for a while, with the link in place.
  for (let round = 0; round < 100 || (removed === 0 && round < 30_000); round++) {
    try {
      mkdirSync(join(path, inner, 'sub'), { recursive: true })
      if (statSync(join(path, inner)).ino === statSync(other.path).ino) continue
      for (const name of names) writeFileSync(join(path, inner, name), 'xxxxxxxx', { flag: 'wx' })
    } catch {
      // It was swapped meanwhile: what is there now is removed.
    }
    await removeFolder(path).then(
      () => removed++,
      (error) => expect([FolderReplaced, FolderNotRemoved]).toContain(error.constructor),
    )
  }
  expect(removed).toBeGreaterThan(0)
})

describe('a file', () => {
  test('with one name is made private, and opened', async () => {
    const folder = await ownFolder()
    writeFileSync(join(folder.path, 'out'), 'bytes', { mode: 0o444 })
    const { ino } = statSync(join(folder.path, 'out'))
    expect(await folder.takeFile('out')).toBe(5)
    expect(statSync(join(folder.path, 'out'))).toMatchObject({ ino, mode: 0o100600 })
    const file = await folder.openFile('out')
    expect(await file.readFile('utf8')).toBe('bytes')
    await file.close()
  })

  test('with a further name is copied, and the other name keeps its file', async () => {
    const other = outside()
    const folder = await ownFolder()
    const path = join(folder.path, 'out')
    const elsewhere = join(dirname(folder.path), 'elsewhere')
    writeFileSync(elsewhere, 'bytes', { mode: 0o640 })
    linkSync(elsewhere, path)
    await expect(folder.openFile('out')).rejects.toThrow(ForeignFile)
    expect(await folder.takeFile('out')).toBe(5)
    expect(statSync(elsewhere)).toMatchObject({ mode: 0o100640, nlink: 1 })
    expect(statSync(path)).toMatchObject({ mode: 0o100600, nlink: 1 })
    writeFileSync(elsewhere, 'other')
    expect(readFileSync(path, 'utf8')).toBe('bytes')
    await (await folder.openFile('out')).close()
    expect(other.state()).toHaveLength(4)
  })

  test.runIf(isRoot)('of another user is copied, and a further name of one is refused', async () => {
    const folder = await ownFolder()
    const elsewhere = join(dirname(folder.path), 'elsewhere')
    for (const path of [join(folder.path, 'theirs'), elsewhere]) {
      writeFileSync(path, 'x', { mode: 0o644 })
      chownSync(path, NOBODY, NOBODY)
    }
    linkSync(elsewhere, join(folder.path, 'foreign'))
    expect(await folder.takeFile('theirs')).toBe(1)
    expect(statSync(join(folder.path, 'theirs'))).toMatchObject({ uid: 0, mode: 0o100600 })
    await expect(folder.takeFile('foreign')).rejects.toThrow(
      'foreign is a hard link to a file of another user.',
    )
    expect(statSync(elsewhere)).toMatchObject({ uid: NOBODY, mode: 0o100644 })
  })

  test('a link, a folder or a pipe is none', async () => {
    const other = outside()
    const folder = await ownFolder()
    symlinkSync(join(other.path, 'sentinel'), join(folder.path, 'link'))
    mkdirSync(join(folder.path, 'sub'))
    execFileSync('mkfifo', [join(folder.path, 'pipe')])
    for (const name of ['link', 'sub', 'pipe']) {
      expect(await folder.takeFile(name)).toBeUndefined()
      await expect(folder.openFile(name)).rejects.toThrow(`${name} is not a file.`)
    }
  })

  test('reads the file of the opened folder after something else has taken its path', async () => {
    const other = outside()
    const folder = await ownFolder()
    writeFileSync(join(folder.path, 'sentinel'), 'ours')
    renameSync(folder.path, `${folder.path}-moved`)
    symlinkSync(other.path, folder.path)
    expect(readFileSync(folder.entry('sentinel'), 'utf8')).toBe(
      process.platform === 'linux' ? 'ours' : 'sentinel',
    )
    if (process.platform === 'linux') expect(await folder.takeFile('sentinel')).toBe(4)
  })
})

test('a link is not held as a folder', async () => {
  const other = outside()
  const path = join(temporaryFolder(), 'link')
  symlinkSync(other.path, path)
  await expect(holdFolder(path)).rejects.toMatchObject({ found: 'a link' })
})
