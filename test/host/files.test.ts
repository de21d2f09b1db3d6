import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { makeFolders, platformFolders, reasonUnwritable } from '../../src/host/file-system.js'
import {
  copyOrLink,
  moveWithoutReplacing,
  removeFile,
  temporaryBeside,
  writeAtomically,
} from '../../src/host/files.js'
import { temporaryFolder } from '../support/index.js'

let folder = ''
beforeEach(() => {
  folder = temporaryFolder()
})

const modeOf = (path: string) => statSync(path).mode & 0o777

it('a temporary name hides the file in its folder, under a name that never repeats', () => {
  const names = Array.from({ length: 100 }, () => temporaryBeside('a/fox.png'))
  expect(new Set(names).size).toBe(100)
  for (const name of names) expect(name).toMatch(/^a\/\.fox\.png\.[0-9a-f]{12}\.part$/)
  expect(dirname(temporaryBeside('fox.png'))).toBe('.')
})

it('a temporary name stays within the 255 bytes that a file system accepts', () => {
  for (const name of ['x'.repeat(255), '狐'.repeat(85), '🦊'.repeat(63)])
    expect(Buffer.byteLength(basename(temporaryBeside(name)))).toBeLessThanOrEqual(255)
})

it('an atomic write makes a file, or replaces it, with the mode that is asked for', async () => {
  const path = join(folder, 'a.json')
  await writeAtomically(path, '{}')
  expect(modeOf(path)).toBe(0o666 & ~process.umask())
  await writeAtomically(path, Buffer.from('[]'), { mode: 0o600 })
  expect(readFileSync(path, 'utf8')).toBe('[]')
  expect(modeOf(path)).toBe(0o600)
  expect(readdirSync(folder)).toEqual(['a.json'])
})

it('an atomic write leaves no file behind when it fails', async () => {
  mkdirSync(join(folder, 'taken/in'), { recursive: true })
  await expect(writeAtomically(join(folder, 'taken'), 'x')).rejects.toMatchObject({ code: 'EISDIR' })
  await expect(writeAtomically(join(folder, 'no/a'), 'x')).rejects.toMatchObject({ code: 'ENOENT' })
  expect(readdirSync(folder)).toEqual(['taken'])
})

/** Codes of Windows, Linux and macOS on exFAT, and of some network folders. */
const NO_LINKS = ['EISDIR', 'EPERM', 'ENOTSUP'] as const

const withoutLinks = (code: string) => ({
  link: async () => {
    throw Object.assign(new Error('no links here'), { code })
  },
})

it.each(NO_LINKS)('a second name is a copy where a link fails with %s', async (code) => {
  const [from, to] = [join(folder, 'from'), join(folder, 'made/to')]
  writeFileSync(from, 'new')
  await copyOrLink(from, to, withoutLinks(code))
  expect([readFileSync(to, 'utf8'), statSync(to).nlink]).toEqual(['new', 1])
})

const [from, to] = [() => join(folder, 'from'), () => join(folder, 'to')]

it.each([
  ['with links', undefined] as const,
  ...NO_LINKS.map((code) => [`where a link fails with ${code}`, withoutLinks(code)] as const),
])('a move that replaces nothing moves, or says EEXIST, %s', async (_, fileSystem) => {
  writeFileSync(from(), 'new')
  await moveWithoutReplacing(from(), to(), fileSystem)
  expect(readdirSync(folder)).toEqual(['to'])
  expect(readFileSync(to(), 'utf8')).toBe('new')
  expect(statSync(to()).nlink).toBe(1)

  writeFileSync(from(), 'newer')
  await expect(moveWithoutReplacing(from(), to(), fileSystem)).rejects.toMatchObject({ code: 'EEXIST' })
  expect(readFileSync(to(), 'utf8')).toBe('new')
  expect(readFileSync(from(), 'utf8')).toBe('newer')
})

it('a move that replaces nothing takes back its claim when the move fails', async () => {
  const fileSystem = withoutLinks('EISDIR')
  await expect(moveWithoutReplacing(from(), to(), fileSystem)).rejects.toMatchObject({ code: 'ENOENT' })
  expect(readdirSync(folder)).toEqual([])
})

it('a move that replaces nothing lets exactly one of many win', async () => {
  for (const fileSystem of [undefined, withoutLinks('EISDIR')]) {
    const names = Array.from({ length: 8 }, (_, number) => join(folder, `from-${number}`))
    for (const name of names) writeFileSync(name, name)
    const moves = names.map((name) => moveWithoutReplacing(name, to(), fileSystem).then(() => name))
    const won = (await Promise.allSettled(moves)).filter((move) => move.status === 'fulfilled')
    expect(won.map((move) => move.value)).toEqual([readFileSync(to(), 'utf8')])
    await removeFile(to())
  }
})

it('makes folders for the user alone, and leaves those that exist as they are', () => {
  makeFolders(join(folder, 'a/b'), 0o700)
  expect([modeOf(join(folder, 'a')), modeOf(join(folder, 'a/b'))]).toEqual([0o700, 0o700])
  chmodSync(join(folder, 'a'), 0o755)
  makeFolders(join(folder, 'a'), 0o700)
  expect(modeOf(join(folder, 'a'))).toBe(0o755)
})

describe('folders', () => {
  it.skipIf(process.platform !== 'linux')(
    'are refused, and not tried again and again, where none can be made',
    () => {
      expect(() => makeFolders('/proc/no-such-folder/below')).toThrow(/ENOENT/)
    },
  )

  it('cannot be created below a file, and the reason names the file', () => {
    const file = join(folder, 'file')
    writeFileSync(file, '')
    expect(() => makeFolders(join(file, 'below'))).toThrow(/ENOTDIR/)
    for (const path of [file, `${file}/`, join(file, 'below'), join(file, 'below/it')])
      expect(reasonUnwritable(path)).toBe(`${file} is a file, not a folder`)
  })

  it('count as writable when a file can be created in them, which leaves no trace', () => {
    expect(reasonUnwritable(folder)).toBeUndefined()
    expect(reasonUnwritable(join(folder, 'not/yet'))).toBeUndefined()
    expect(readdirSync(folder)).toEqual([])
  })

  it.skipIf(process.platform !== 'linux')(
    'are unwritable where root may write, but no file can be created',
    () => {
      expect(reasonUnwritable('/proc/self/none/below')).toBe('/proc/self: no file can be created there')
    },
  )
})

const LINUX = ['/h/.config/rushes', '/h/.local/state/rushes']
it.each<[string, NodeJS.Platform, Record<string, string>, string[]]>([
  ['the defaults on Linux', 'linux', { HOME: '/h' }, LINUX],
  ['XDG', 'linux', { HOME: '/h', XDG_CONFIG_HOME: '/c', XDG_STATE_HOME: '/s' }, ['/c/rushes', '/s/rushes']],
  ['XDG that is not absolute', 'linux', { HOME: '/h', XDG_CONFIG_HOME: 'c', XDG_STATE_HOME: './s' }, LINUX],
  [
    'macOS',
    'darwin',
    { HOME: '/h', XDG_CONFIG_HOME: '/c' },
    ['/h/Library/Preferences/rushes', '/h/Library/Application Support/rushes'],
  ],
  [
    'Windows',
    'win32',
    { APPDATA: 'C:\\people\\a b\\AppData\\Roaming', LOCALAPPDATA: 'D:\\Local\\' },
    ['C:\\people\\a b\\AppData\\Roaming\\rushes', 'D:\\Local\\rushes'],
  ],
])('the folders of the program follow %s', (_, platform, env, [config, state]) => {
  expect(platformFolders('rushes', env, platform)).toEqual({ config, state })
})

it('the folders without a home: what the system says, and the root where not even that knows one', () => {
  const unknown = () => {
    throw new Error('uv_os_homedir returned ENOENT')
  }
  const [config, state] = LINUX
  expect(platformFolders('rushes', {}, 'linux', () => '/h')).toEqual({ config, state })
  const root = { config: '/.config/rushes', state: '/.local/state/rushes' }
  expect(platformFolders('rushes', { HOME: '' }, 'linux', unknown)).toEqual(root)
})
