/** Whole commands on Linux, Windows and macOS: paths, letter case, locks of files, line ends, shells. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, sep } from 'node:path'
import { expect, it } from 'vitest'
import { afterFile } from '../support/after-file.js'
import { type Environment, filesBelow, start } from '../support/index.js'

const isWindows = process.platform === 'win32'
/** By default, as on most machines. */
const ignoresCase = isWindows || process.platform === 'darwin'

// Without links, and without the short names of Windows, which the working folder has neither.
const root = realpathSync.native(mkdtempSync(join(tmpdir(), 'rushes-any-')))
const folder = join(root, 'é and spaces')
const state = join(root, 'state')
mkdirSync(folder)
const { RUSHES_BASE_URL: _, RUSHES_API_KEY: __, ...machine } = process.env
let env: Environment = {
  ...machine,
  RUSHES_STATE_DIR: state,
  RUSHES_CONFIG_DIR: join(root, 'config'),
}
afterFile(() => rmSync(root, { recursive: true, force: true, maxRetries: 10 }))

const begin = (line: readonly string[], more: Environment = {}) =>
  start({ folder, env: { ...env, ...more } }, line, { stdin: 'ignore' })
const run = (line: readonly string[], more?: Environment) => begin(line, more).ended

const write = (name: string, ...rows: readonly string[]) =>
  writeFileSync(join(folder, name), ['defaults: {kind: image}', 'runs:', ...rows, ''].join('\r\n'))
const pictures = () =>
  filesBelow(folder)
    .map((path) => path.replaceAll(sep, '/'))
    .filter((name) => name.endsWith('.png'))
const LOCAL_FOX = ['run', 'image', 'a fox', '--local', '-o']

it('commands with --local list puts a damaged journal aside', async () => {
  expect(await run(['list'])).toMatchObject({ code: 0 })
  writeFileSync(join(state, 'journal.db'), 'not a database at all')
  expect((await run(['list'])).stderr).toContain('It was renamed to')
  expect(filesBelow(state).filter((name) => /damaged-.*\d$/.test(name))).toHaveLength(1)
})

it('commands with --local config path prints an absolute path', async () => {
  const { stdout } = await run(['config', 'path'])
  expect(stdout).toBe(`${join(root, 'config', 'config.json')}\n`)
})

it('commands with --local run downloads to an absolute path with spaces and é', async () => {
  const path = join(folder, 'made', 'é fox.png')
  expect(await run([...LOCAL_FOX, path])).toMatchObject({ code: 0, stdout: `${path}\n` })
  expect(pictures()).toEqual(['made/é fox.png'])
})

it('commands with --local run refuses an existing file', async () => {
  const { code, stderr } = await run([...LOCAL_FOX, 'made/é fox.png'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('already exists')])
})

it.runIf(ignoresCase)('commands with --local run refuses an existing file in other letter case', async () => {
  const { code, stderr } = await run([...LOCAL_FOX, 'MADE/É FOX.PNG'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('already exists')])
})

it.runIf(isWindows).each(['q?.png', 'aux.png', 'out./{id}.png'])(
  'commands with --local run refuses the name %s before anything is sent',
  async (name) => {
    const { code, stderr } = await run([...LOCAL_FOX, name])
    expect([code, stderr]).toEqual([2, expect.stringMatching(/Windows.*Nothing was sent/)])
  },
)

it('commands with --local batch reads a manifest with CRLF', async () => {
  write('s.yaml', '  - {name: fox, prompt: a fox}', '  - {name: hen, prompt: a hen, output: birds/hen.png}')
  expect(await run(['batch', 's.yaml', '--local'])).toMatchObject({ code: 0 })
  expect(pictures()).toEqual(['birds/hen.png', 'fox.png', 'made/é fox.png'])
})

it('commands with --local batch swaps the files of two rows', async () => {
  const read = () => ['fox.png', 'birds/hen.png'].map((name) => readFileSync(join(folder, name)))
  const [fox, hen] = read()
  write(
    's.yaml',
    '  - {name: fox, prompt: a fox, output: birds/hen.png}',
    '  - {name: hen, prompt: a hen, output: fox.png}',
  )
  expect(await run(['batch', 's.yaml', '--local'])).toMatchObject({ code: 0 })
  expect(read()).toEqual([hen, fox])
})

it('commands with --local batch moves an output outside its folder', async () => {
  const target = join(root, 'fox.png')
  write(
    's.yaml',
    `  - {name: fox, prompt: a fox, output: ${JSON.stringify(target)}}`,
    '  - {name: hen, prompt: a hen, output: fox.png}',
  )
  expect(await run(['batch', 's.yaml', '--local', '--allow-outside'])).toMatchObject({
    code: 0,
    stdout: `${join('..', 'fox.png')}\n`,
  })
  expect(pictures()).toEqual(['fox.png', 'made/é fox.png'])
})

it('commands with --local batch finds a foreign file, in other letter case too, and sends nothing', async () => {
  write('t.yaml', '  - {name: owl, prompt: an owl}')
  writeFileSync(join(folder, ignoresCase ? 'OWL.PNG' : 'owl.png'), 'foreign')
  const { code, stderr } = await run(['batch', 't.yaml', '--local'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('not created by this batch')])
})

it.runIf(isWindows)('commands with --local run refuses a command as engine without a shell', async () => {
  const { code, stderr } = await run([...LOCAL_FOX, 'sh.png', '--engine', 'draw.sh'], {
    PATH: '',
    Path: '',
  })
  expect([code, stderr]).toEqual([2, expect.stringContaining('needs the program sh')])
})

it('commands with --local gallery writes a page with relative paths', async () => {
  expect(await run(['gallery', '-o', 'gallery.html'])).toMatchObject({ code: 0 })
  expect(readFileSync(join(folder, 'gallery.html'), 'utf8')).toContain('made/%C3%A9%20fox.png')
})

let key = ''
it('serve prints the lines of the shell of the system', async () => {
  const served = begin(['serve', '--port', '0', '--data', 'data'])
  await served.prints('stdout', /VIDEO_MODEL.*\n/)
  const line = isWindows ? /^(?:set "|\$env:)(\w+)(?:=| = ')([^"'\r\n]+)/gm : /^export (\w+)=(\S+)$/gm
  const { RUSHES_API_KEY = '', ...others } = Object.fromEntries(
    [...served.printed.stdout.matchAll(line)].map(([, name, value]) => [name, value]),
  )
  key = RUSHES_API_KEY
  env = { ...env, ...others }
  expect(Object.keys(others)).toEqual(['RUSHES_BASE_URL', 'RUSHES_IMAGE_MODEL', 'RUSHES_VIDEO_MODEL'])
})

it('run takes the key from a file with CRLF', async () => {
  writeFileSync(join(folder, 'key.txt'), `${key}\r\n`)
  const { code, stdout } = await run(['run', 'image', 'a fox', '--no-wait'], {
    RUSHES_API_KEY_FILE: 'key.txt',
  })
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^run_\w+\r?\n$/)])
})

it('wait takes the key from a command with quotes', async () => {
  mkdirSync(join(folder, 'key tool'))
  const tool = join(folder, 'key tool', isWindows ? 'key.cmd' : 'key')
  writeFileSync(tool, isWindows ? `@echo ${key}\r\n` : `#!/bin/sh\necho ${key}\n`, { mode: 0o700 })
  const { code, stdout } = await run(['wait', '--last', '-o', 'waited.{ext}'], {
    RUSHES_API_KEY_COMMAND: `"${tool}" "a b"`,
  })
  expect([code, stdout]).toEqual([0, 'waited.png\n'])
})
