/** Machines that lack something: a home, the SQLite package, a program, a network. */
import { spawnSync } from 'node:child_process'
import { existsSync, rmdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { canMount } from '../support/containers.js'
import {
  BINARY,
  bash,
  createPlace,
  type Place,
  personAt,
  quoted,
  rowsOf,
  runCli,
  rushes,
  type Service,
  serveQuickly,
  temporaryFolder,
} from '../support/index.js'

let service: Service
beforeAll(async () => {
  service = await serveQuickly()
})

/** Nothing can be made below it, not even by root. */
const UNWRITABLE = '/dev/null/home'

it.each([
  [['run', 'image', '--local', 'a fox']],
  [['serve', '--port', '0']],
  [['config', 'set', 'timeout', '5m']],
  [['list']],
])('in a home that is not writable, %j names the path and exits 2', async (words) => {
  const { code, stdout, stderr } = await runCli(words, { home: UNWRITABLE })
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(UNWRITABLE)
  expect(stderr).not.toMatch(/^\s+at /m)
})

it.skipIf(process.platform === 'win32').each([
  ['gallery', 'The current folder no longer exists'],
  ['mcp', 'The current folder no longer exists'],

  ['run image --local fox', 'Cannot write outputs: the current folder no longer exists. Nothing was sent.'],
])('in a folder that was removed, %s names it and exits 2', async (line, message) => {
  const [before, folder] = [process.cwd(), temporaryFolder()]
  process.chdir(folder)
  rmdirSync(folder)
  const { code, stdout, stderr } = await runCli(line.split(' ')).finally(() => process.chdir(before))
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(message)
  expect(stderr).not.toMatch(/bug|uv_cwd/)
})

/** An installation as `npm install --omit=optional` leaves it. */
function withoutSqlite(place: Place): Place {
  const preload = join(place.home, 'without-sqlite.cjs')
  writeFileSync(
    preload,
    `const Module = require('node:module'); const resolve = Module._resolveFilename
     Module._resolveFilename = function (name, ...more) {
       if (!name.startsWith('@libsql/')) return resolve.call(this, name, ...more)
       throw Object.assign(new Error("Cannot find module '" + name + "'"), { code: 'MODULE_NOT_FOUND' })
     }`,
  )
  return place.with({ NODE_OPTIONS: `--require ${preload}` })
}

it.concurrent('without the SQLite package of the platform, run --local says how to install it and exits 2', async () => {
  const words = ['run', 'image', 'a fox', '--local']
  const { code, stdout, stderr } = await rushes(withoutSqlite(createPlace()), words)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  const system = `${process.platform}-${process.arch}`
  expect(stderr).toMatch(
    new RegExp(`^error: The SQLite package for this system \\(${system}\\) cannot be loaded: `),
  )
  expect(stderr).toContain('npm install -g rushes')
  expect(stderr).not.toMatch(/bug in rushes/)
})

it.concurrent('without the SQLite package of the platform, run warns that its run will not be remembered', async () => {
  const words = ['run', 'image', 'a fox', '-o', 'fox.png']
  const { code, stdout, stderr } = await rushes(withoutSqlite(await personAt(service)), words)
  expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: 'fox.png\n' })
  expect(stderr.match(/SQLite package .* will not be remembered/g)).toHaveLength(1)
})

/** Node and the program may also lie where others cannot look. */
const ANYBODY = ['--reuid', '54321', '--regid', '54321', '--clear-groups']
const program = `${quoted(process.execPath)} ${quoted(BINARY)}`
const canBeAnybody =
  spawnSync('setpriv', [
    ...ANYBODY,
    'sh',
    '-c',
    `[ -x ${quoted(process.execPath)} ] && [ -r ${quoted(BINARY)} ]`,
  ]).status === 0

it.skipIf(!canMount).concurrent(
  'a run succeeds with a home on a read-only disk, and warns once',
  async () => {
    const script = `mount --bind "$HOME" "$HOME" && mount -o remount,bind,ro "$HOME" || exit 99
       exec rushes run image "a fox" -o fox.png`
    const { code, stdout, stderr } = await bash(
      await personAt(service),
      `mkdir -p "$HOME/.config/rushes" "$HOME/state"
       exec unshare -rm bash -c ${quoted(script)}`,
    )
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'fox.png\n' })
    expect(stderr.match(/will not be remembered/g)).toHaveLength(1)
    expect(stderr).not.toMatch(/^\s+at |bug/m)
  },
)

it.skipIf(!canBeAnybody).concurrent('a run succeeds for a user without an account and a home', async () => {
  const { code, stdout, stderr } = await bash(
    await personAt(service),
    `exec setpriv ${ANYBODY.join(' ')} env -u HOME -u RUSHES_STATE_DIR ${program} run image "a fox"`,
  )
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^http.*\n$/) })
  expect(stderr).toMatch(/will not be remembered/)
})

// What is said of an opener that fails: test/cli/open.test.ts.
it.skipIf(process.platform !== 'linux').concurrent(
  'in a locale that is not UTF-8, a prompt and a file keep their names, and `open` gives the file to the opener on PATH',
  async () => {
    const user = await personAt(service)
    const place = user.with({ LC_ALL: 'POSIX', PATH: `${user.folder}${delimiter}${user.env.PATH}` })
    const opener = '#!/bin/sh\necho "$1" > opened.tmp && mv opened.tmp opened\n'
    writeFileSync(join(place.folder, 'xdg-open'), opener, { mode: 0o755 })
    const { code, stdout, stderr } = await bash(
      place,
      `rushes run image -q "ein Füchschen 狐" -o 'Füchse 狐.png' && rushes open -q --last && cat opened`,
    )
    const opened = join(place.folder, 'Füchse 狐.png')
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: ['Füchse 狐.png', opened, opened, ''].join('\n'),
      stderr: '',
    })
    expect(existsSync(opened)).toBe(true)
    expect(rowsOf(place.home)).toMatchObject([{ input: { prompt: 'ein Füchschen 狐' } }])
  },
)
