/** Machines that lack something: a home, a standard input, a network. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  BINARY,
  bash,
  createPlace,
  filesBelow,
  type Place,
  processesOf,
  quoted,
  rushes,
  serve,
} from '../support/binary.js'

/** Nothing can be made below it, not even by root. */
const UNWRITABLE = '/dev/null/home'

/** An address at which nobody listens. */
async function refusingUrl(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
}

const elsewhere = (place: Place, url: string) =>
  place.with({ RUSHES_BASE_URL: url, RUSHES_API_KEY: 'key', RUSHES_IMAGE_MODEL: 'acme/still-1' })

describe.concurrent('a home that cannot be written', () => {
  it('is no hindrance to a run', async () => {
    const place = (await serve(createPlace())).with({ HOME: UNWRITABLE })
    const { code, stdout, stderr } = await rushes(place, ['run', 'image', 'a fox', '-o', 'fox.png'])
    expect(stderr).not.toContain('error')
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'fox.png\n' })
  })

  it.each([
    [['run', 'image', '--local', 'a fox']],
    [['serve', '--port', '0']],
    [['config', 'set', 'timeout', '5m']],
  ])('%j says what cannot be kept', async (words) => {
    const place = createPlace().with({ HOME: UNWRITABLE })
    const { code, stdout, stderr } = await rushes(place, words)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(UNWRITABLE)
    expect(stderr).not.toMatch(/^\s+at /m)
  })
})

describe.concurrent('no home at all', () => {
  it('leaves everything that keeps nothing as it is', async () => {
    const place = createPlace().with({ HOME: undefined })
    const { code, stdout } = await rushes(place, ['config', 'path'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^\/.+\/config\.json\n$/)
    expect((await rushes(place, ['run', 'image', 'fox', '--dry-run', '--model', 'a/b'])).code).toBe(0)
  })

  it('takes the folders that are named', async () => {
    const place = createPlace()
    const named = place.with({ HOME: undefined, RUSHES_STATE_DIR: place.home, RUSHES_CONFIG_DIR: place.home })
    expect((await rushes(named, ['run', 'image', '--local', 'fox'])).code).toBe(0)
    expect(filesBelow(place.home)).toContain('local/service.db')
  })
})

describe.concurrent('an installation without the SQLite package of the platform', () => {
  /** As `npm install --omit=optional` leaves it. */
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

  it.each([['list'], ['run', 'image', 'a fox', '--local'], ['serve', '--port', '0']])(
    '%s: says how to install it, and exits 2',
    async (...words) => {
      const { code, stdout, stderr } = await rushes(withoutSqlite(createPlace()), words)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toMatch(
        new RegExp(
          `^error: The SQLite package for this system \\(${process.platform}-${process.arch}\\) cannot be loaded: `,
        ),
      )
      expect(stderr).toContain('npm install -g rushes')
      expect(stderr).not.toMatch(/bug in rushes/)
    },
  )

  it('a run of a service continues, and says that it will not be remembered', async () => {
    const place = await serve(createPlace())
    const { code, stdout, stderr } = await rushes(withoutSqlite(place), [
      'run',
      'image',
      'a fox',
      '-o',
      'fox.png',
    ])
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'fox.png\n' })
    expect(stderr.match(/SQLite package .* will not be remembered/g)).toHaveLength(1)
  })
})

const canMount =
  spawnSync('unshare', ['-rm', 'sh', '-c', 'mount -t tmpfs tmpfs /mnt && mount -o remount,ro /mnt'])
    .status === 0
/** Nor may Node or the program lie where others cannot look. */
const ANYBODY = ['--reuid', '54321', '--regid', '54321', '--clear-groups']
const canBeAnybody = spawnSync('setpriv', [...ANYBODY, process.execPath, BINARY, '--version']).status === 0

describe.skipIf(!canMount).concurrent('a home on a read-only disk', () => {
  const withReadOnlyHome = (place: Place, script: string) =>
    bash(
      place,
      `mkdir -p "$HOME/.config/rushes" "$HOME/.local/state/rushes"
       exec unshare -rm bash -c ${quoted(`mount --bind "$HOME" "$HOME" && mount -o remount,bind,ro "$HOME" || exit 99\n${script}`)}`,
    )

  it('is no hindrance to a run, and is told once', async () => {
    const place = await serve(createPlace())
    const { code, stdout, stderr } = await withReadOnlyHome(
      createPlace().with({ ...place.env, HOME: createPlace().home }),
      `set -euo pipefail
       rushes run image "a fox" -o fox.png
       rushes run image "an owl" --no-wait -q | rushes wait - -q -d
       rushes models > /dev/null
       rushes config set timeout 5m || echo "exit $?"`,
    )
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^fox\.png\nrun_\w+\.png\nexit 2\n$/),
    })
    expect(stderr).toMatch(/will not be remembered/)
    expect(stderr).not.toMatch(/^\s+at |bug/m)
  })
})

describe.skipIf(!canBeAnybody)('a user without an account, and no home', () => {
  const anybody = (place: Place, line: string) =>
    bash(
      place,
      `exec setpriv ${ANYBODY.join(' ')} env -u HOME ${quoted(process.execPath)} ${quoted(BINARY)} ${line}`,
    )

  it.each(['models', 'config path', '--help', 'run image fox --dry-run --model a/b'])('%s', async (line) => {
    const { code, stderr } = await anybody(createPlace(), line)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })

  it('a run says that nothing is remembered', async () => {
    const place = await serve(createPlace())
    const { code, stdout, stderr } = await anybody(place, 'run image "a fox"')
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^http.*\n$/) })
    expect(stderr).toMatch(/will not be remembered/)
  })
})

describe.concurrent('a locale that is not UTF-8', () => {
  it('names and prompts stay what they are', async () => {
    const place = createPlace().with({ LC_ALL: 'POSIX' })
    const { code, stdout, stderr } = await bash(
      place,
      `set -euo pipefail
       rushes run image --local -q "ein Füchschen 狐" -o 'Füchse 狐.png'
       rushes list --json`,
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(filesBelow(place.folder)).toEqual(['Füchse 狐.png'])
    const [file, row] = stdout.split('\n')
    expect(file).toBe('Füchse 狐.png')
    expect(JSON.parse(row ?? '').input.prompt).toBe('ein Füchschen 狐')
  })
})

describe.concurrent('bash with set -euo pipefail', () => {
  it.each([
    ['a run that is refused', 'rushes run image --local "" -q', 2],
    ['a left side that fails', 'rushes run image --model | rushes wait --local -', 2],
    ['a reader that stops', 'rushes run image --local -q -o - fox | head -c 1 > /dev/null', 141],
    ['a substitution', 'id=$(rushes run image --local --model x fox); echo "$id"', 2],
    ['a condition', 'if rushes status --local run_none -q; then echo yes; else echo "no $?"; fi', 0],
  ])('%s', async (_, line, exit) => {
    const { code, stdout } = await bash(createPlace(), `set -euo pipefail\n${line}\necho "went on"`)
    expect([code, stdout.includes('went on')]).toEqual([exit, exit === 0])
  })
})

describe.concurrent('standard streams that are closed', () => {
  it('standard input: a run needs none, a dash finds nothing', async () => {
    const { code, stdout, stderr } = await bash(
      createPlace(),
      `rushes run image --local -q fox <&-; echo "$?"
      rushes run image --local --prompt - <&-; echo "$?"`,
    )
    expect(code).toBe(0)
    expect(stdout).toMatch(/^run_\w+\.png\n0\n2\n$/)
    expect(stderr).toContain('nothing was sent')
  })

  it('standard error: the answer and the exit code stay', async () => {
    const { stdout } = await bash(
      createPlace(),
      'rushes run image --local fox 2>&-; echo "$?"; rushes nothing 2>&-; echo "$?"',
    )
    expect(stdout).toMatch(/^run_\w+\.png\n0\n2\n$/)
  })
})

describe.skipIf(process.platform !== 'linux').concurrent('--open', () => {
  const fox = ['run', 'image', '--local', '-q', 'fox', '-o', 'fox.png', '--open']

  it('without an opener on PATH: a warning, and the file is there', async () => {
    const place = createPlace()
    const { code, stdout, stderr } = await rushes(place.with({ PATH: place.folder }), fox)
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'fox.png\n' })
    expect(stderr).toBe('warning: fox.png could not be opened: xdg-open is not installed.\n')
    expect(filesBelow(place.folder)).toEqual(['fox.png'])
  })

  it('gives the file to the opener on PATH', async () => {
    const place = createPlace()
    const opener = join(place.folder, 'xdg-open')
    writeFileSync(opener, '#!/bin/sh\necho "$1" > opened.tmp && mv opened.tmp opened\n', { mode: 0o755 })
    const path = `${place.folder}${delimiter}${place.env.PATH}`
    // rushes does not wait for the opener.
    const { code, stdout, stderr } = await bash(
      place.with({ PATH: path }),
      `rushes ${fox.join(' ')} && until [ -f opened ]; do sleep 0.05; done; cat opened`,
    )
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'fox.png\nfox.png\n', stderr: '' })
  })
})

describe.concurrent('a network that is gone', () => {
  it('ends a create with 9, and says that nothing was paid', async () => {
    const place = elsewhere(createPlace(), await refusingUrl())
    const [plain, json] = await Promise.all([
      rushes(place, ['run', 'image', 'a fox']),
      rushes(place, ['run', 'image', 'a fox', '--json']),
    ])
    expect(plain).toMatchObject({ code: 9, stdout: '' })
    expect(plain.stderr).toMatch(/No run was created and nothing was paid/)
    expect(plain.stderr).not.toMatch(/^\s+at /m)
    expect(json.code).toBe(9)
    expect(JSON.parse(json.stderr)).toEqual({
      error: {
        code: 'network',
        message: expect.any(String),
        hint: expect.any(String),
        http_status: null,
        exit_code: 9,
        run_id: null,
      },
    })
  })

  it('ends a status with 9, naming the run', async () => {
    const place = elsewhere(createPlace(), await refusingUrl())
    const { code, stdout, stderr } = await rushes(place, ['status', 'run_1'])
    expect({ code, stdout }).toEqual({ code: 9, stdout: '' })
    expect(stderr).toContain('run_1')
  })

  it('comes back: a wait outlasts a service that starts again', async () => {
    const home = createPlace()
    const first = await serve(home)
    const port = new URL(first.url).port
    const { stdout } = await rushes(first, ['run', 'video', 'a fox', '--no-wait'])
    const waiting = rushes(first, ['wait', stdout.trim()])
    first.process.kill('SIGKILL')
    await first.process.ended
    const second = await serve(home, ['--port', port])
    expect(second.url).toBe(first.url)
    expect(await waiting).toMatchObject({ code: 0, stdout: expect.stringContaining(`${first.url}/outputs/`) })
    second.process.kill('SIGTERM')
    await second.process.ended
    expect(processesOf(home, /renderer/)).toEqual([])
  })
})
