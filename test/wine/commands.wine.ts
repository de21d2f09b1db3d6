/** Twenty whole commands with the Node.js of Windows. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.js'
import { until } from '../support/until.js'
import { missingParts } from './parts.js'
import { installForWindows, onZ, startNode, startRushes } from './wine.js'

/** Folder on the drive of Wine itself. */
const OTHER = `rushes-${process.pid}`

describe.skipIf(missingParts().length > 0)('with the Node.js of Windows', () => {
  let app = ''
  let folder = ''
  let env: Record<string, string> = {}
  beforeAll(() => {
    app = installForWindows()
    folder = join(temporaryFolder(), 'é and spaces')
    mkdirSync(folder)
    env = {
      RUSHES_STATE_DIR: onZ(join(folder, '..', 'state')),
      RUSHES_CONFIG_DIR: onZ(join(folder, '..', 'config')),
    }
  })

  afterAll(async () => {
    await startNode(['-e', `require('fs').rmSync('C:/${OTHER}', { recursive: true })`], { cwd: app }).ended
  })

  const run = (words: readonly string[], more: Record<string, string> = {}) =>
    startRushes(app, words, { cwd: folder, env: { ...env, ...more } }).ended
  const write = (name: string, ...rows: readonly string[]) =>
    writeFileSync(join(folder, name), ['defaults: {kind: image}', 'runs:', ...rows, ''].join('\r\n'))
  const pictures = (below = folder) =>
    readdirSync(below, { recursive: true })
      .map(String)
      .filter((name) => name.endsWith('.png'))
      .sort()

  it('Wine still has its fault of keep-alive, for which the preload file exists', async () => {
    const { stdout } = await startNode([onZ(resolve('test/wine/keep-alive.cjs'))], { cwd: folder }).ended
    expect(stdout.trim()).toBe('UNKNOWN')
  })

  it('1: --version prints the version', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
    expect(await run(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` })
  })

  it('2: list leaves a damaged journal as it is while another process has it open', async () => {
    expect(await run(['list'])).toMatchObject({ code: 0 })
    const state = join(folder, '..', 'state')
    const journal = onZ(join(state, 'journal.db'))
    const script = `const open = new (require('libsql'))(process.argv[1]); console.log('open'); setInterval(() => open, 1000)`
    const holder = startNode(['-e', script, journal], { cwd: app })
    await until('the journal is open', () => holder.read().stdout.includes('open') || undefined)
    writeFileSync(join(state, 'journal.db'), 'not a database at all')
    for (let attempt = 1; attempt <= 2; attempt++)
      expect((await run(['list'])).stderr).toContain('the file is damaged, and another process uses it')
    expect(readdirSync(state).filter((name) => name.includes('damaged'))).toEqual([])
    holder.child.kill()
    await holder.ended
    expect((await run(['list'])).stderr).toContain('It was renamed to')
  })

  it('3: config path prints a path with a drive letter', async () => {
    expect((await run(['config', 'path'])).stdout).toMatch(/^Z:\\.*config\.json\n$/)
  })

  it('4: run downloads to a path with a drive letter, spaces and é', async () => {
    const path = `${onZ(folder)}\\made\\é fox.png`
    expect(await run(['run', 'image', 'a fox', '--local', '-o', path])).toMatchObject({
      code: 0,
      stdout: `${path}\n`,
    })
    expect(pictures()).toEqual(['made/é fox.png'])
  })

  it('5: run refuses an existing file in other letter case', async () => {
    const { code, stderr } = await run(['run', 'image', 'a fox', '--local', '-o', 'MADE/É FOX.PNG'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('already exists')])
  })

  it.each([
    ['6', 'q?.png'],
    ['7', 'aux.png'],
    ['8', 'out./{id}.png'],
  ])('%s: run refuses the name %s before anything is sent', async (_, name) => {
    const { code, stderr } = await run(['run', 'image', 'a fox', '--local', '-o', name])
    expect([code, stderr]).toEqual([2, expect.stringMatching(/Windows.*Nothing was sent/)])
  })

  it('9: batch reads a manifest with CRLF', async () => {
    write('s.yaml', '  - {name: fox, prompt: a fox}', '  - {name: hen, prompt: a hen, output: birds/hen.png}')
    expect(await run(['batch', 's.yaml', '--local'])).toMatchObject({ code: 0 })
    expect(pictures()).toEqual(['birds/hen.png', 'fox.png', 'made/é fox.png'])
  })

  it('10: batch has nothing to do again, also where --only has a backslash', async () => {
    expect(await run(['batch', 's.yaml', '--local', '--only', 'birds\\*'])).toMatchObject({
      code: 0,
      stdout: '',
    })
  })

  it('11: batch swaps the files of two rows', async () => {
    const [fox, hen] = ['fox.png', 'birds/hen.png'].map((name) => readFileSync(join(folder, name)))
    write(
      's.yaml',
      '  - {name: fox, prompt: a fox, output: birds/hen.png}',
      '  - {name: hen, prompt: a hen, output: fox.png}',
    )
    expect(await run(['batch', 's.yaml', '--local'])).toMatchObject({ code: 0 })
    expect(['birds/hen.png', 'fox.png'].map((name) => readFileSync(join(folder, name)))).toEqual([fox, hen])
  })

  it('12: batch moves an output to another drive', async () => {
    write(
      's.yaml',
      `  - {name: fox, prompt: a fox, output: "C:/${OTHER}/fox.png"}`,
      '  - {name: hen, prompt: a hen, output: fox.png}',
    )
    const { code, stdout } = await run(['batch', 's.yaml', '--local', '--allow-outside'])
    expect([code, stdout]).toEqual([0, `C:\\${OTHER}\\fox.png\n`])
    expect(existsSync(join(folder, 'birds/hen.png'))).toBe(false)
  })

  it('13: batch finds a foreign file in other letter case, and sends nothing', async () => {
    write('t.yaml', '  - {name: owl, prompt: an owl}')
    writeFileSync(join(folder, 'OWL.PNG'), 'foreign')
    const { code, stderr } = await run(['batch', 't.yaml', '--local'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('not created by this batch')])
  })

  it('14: run refuses a command as engine without a shell', async () => {
    const { code, stderr } = await run(['run', 'image', 'a fox', '--local', '--engine', 'draw.sh'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('needs the program sh')])
  })

  it('15: list prints the runs', async () => {
    expect((await run(['list'])).stdout.trim().split('\n')).toHaveLength(3)
  })

  it('16: gallery writes a page with relative paths', async () => {
    expect(await run(['gallery', '-o', 'gallery.html'])).toMatchObject({ code: 0 })
    expect(readFileSync(join(folder, 'gallery.html'), 'utf8')).toContain('made/%C3%A9%20fox.png')
  })

  describe('against `serve`', () => {
    let served: ReturnType<typeof startRushes>
    let key = ''
    const lines = () =>
      Object.fromEntries(
        [...served.read().stdout.matchAll(/(RUSHES_\w+)[ ="']+([^"'\r\n]+)/g)].map(([, name, value]) => [
          name,
          value,
        ]),
      )
    beforeAll(async () => {
      served = startRushes(app, ['serve', '--port', '0', '--data', 'data'], { cwd: folder, env })
      await until('serve prints its lines', () => lines().RUSHES_VIDEO_MODEL)
      const { RUSHES_API_KEY = '', ...others } = lines()
      key = RUSHES_API_KEY
      env = { ...env, ...others }
    })
    afterAll(async () => {
      served.child.kill()
      await served.ended
    })

    it('17: serve prints the lines of the shell of Windows', () => {
      expect(served.read().stdout).toMatch(/^(set "RUSHES_BASE_URL=|\$env:RUSHES_BASE_URL = ')/)
    })

    it('18: run takes the key from a file that PowerShell 5 wrote', async () => {
      writeFileSync(join(folder, 'key.txt'), Buffer.from(`\ufeff${key}\r\n`, 'utf16le'))
      const { code, stdout } = await run(['run', 'image', 'a fox', '--no-wait'], {
        RUSHES_API_KEY_FILE: 'key.txt',
      })
      expect([code, stdout]).toEqual([0, expect.stringMatching(/^run_\w+\r?\n$/)])
    })

    it('19: wait takes the key from a command with quotes', async () => {
      mkdirSync(join(folder, 'key tool'))
      writeFileSync(join(folder, 'key tool', 'key.cmd'), `@echo ${key}\r\n`)
      const command = `"${onZ(folder)}\\key tool\\key.cmd" "a b"`
      const { code, stdout } = await run(['wait', '--last', '-o', 'waited.{ext}'], {
        RUSHES_API_KEY_COMMAND: command,
      })
      expect([code, stdout]).toEqual([0, 'waited.png\n'])
    })

    it('20: doctor finds no failure', async () => {
      const { stdout } = await run(['doctor'], { RUSHES_API_KEY: key })
      expect(stdout).not.toMatch(/^failed/m)
    })
  })
})
