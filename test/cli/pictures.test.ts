/** `--show`: when pictures are drawn, of what, how and how large, and what is said where they are not. */
import { readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { beforeAll, expect, it } from 'vitest'
import { formFor, protocolOf } from '../../src/cli/terminal/terminal-graphics.js'
import { drawPicture } from '../../src/preview/terminal-picture.js'
import { claimingPng, plainPicture } from '../preview/support/pictures.js'
import {
  type CliService,
  createCliService,
  createCommandedEngine,
  createHome,
  createInstantEngine,
  type RunOptions,
  temporaryFolder,
  usageErrorOf,
} from '../support/index.js'
import { tinyVideo } from '../support/tiny-video.js'

const KITTY = { TERM: 'xterm-kitty' }
const PLAIN = {}

/** Without a width, there is no spinner, which would fail on these streams. Pictures then take 80 columns. */
const TTY: RunOptions = { tty: { stdout: true, stderr: true }, columns: 0 }
/** The tests run without colour, and possibly in CI. */
const COLOUR = { NO_COLOR: '', CI: '', TERM: 'xterm-256color', COLORTERM: 'truecolor' }

const on = (...env: readonly Readonly<Record<string, string>>[]): RunOptions => ({
  ...TTY,
  drawPicture: (request) => drawPicture(request, ''),
  env: Object.assign({}, COLOUR, ...env),
})

let fox: Buffer
let shared: CliService
beforeAll(async () => {
  fox = await plainPicture('#ff8000', 400, 200).png().toBuffer()
  shared = await serviceWith()
})
const serviceWith = (bytes: Uint8Array = fox, files = ['image.png'], contentType = 'image/png') =>
  createCliService({ engine: createInstantEngine({ bytes, files, contentType }) })

const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith('rushes-picture-'))
const HALF_BLOCKS = /\u001b\[38;2;255;128;0;48;2;255;128;0m▀+\u001b\[0m\n/

it('run --show draws the result without a file, and sends no request to the terminal', async () => {
  const service = await serviceWith()
  const { code, stdout, stderr } = await service.run('run image fox --show', on(KITTY))
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^http:\S+\n$/) })
  expect(stderr).not.toMatch(/\u001b\[(?:>q|c|\d+t)|\u001b_G[^;]*a=q/)
  const [, base64 = ''] = /\u001b_Ga=T,f=100,q=2,m=0;([^\u001b]+)\u001b\\\n/.exec(stderr) ?? []
  expect(await sharp(Buffer.from(base64, 'base64')).metadata()).toMatchObject({ width: 384, height: 192 })
  expect(service.rows()).toMatchObject([{ phase: 'succeeded' }])
  const output = service.requests.find(({ url }) => url.href === stdout.trim())
  expect(output?.headers).not.toHaveProperty('authorization')
  expect(folders()).toEqual([])
})

it('run --show draws each file that it downloads, in half of the window', async () => {
  const service = await serviceWith()
  const folder = temporaryFolder()
  const line = `run image fox -n 2 -o ${folder}/{index}.png --show`
  const { stdout, stderr } = await service.run(line, on(PLAIN))
  expect(stdout).toBe(`${folder}/1.png\n${folder}/2.png\n`)
  const drawn = stderr.split('\n').filter((each) => HALF_BLOCKS.test(`${each}\n`))
  // 400 x 200 pixels in 80 columns and 12 rows of 2 pixels.
  expect(drawn).toHaveLength(24)
  expect(drawn[0]?.match(/▀/g)).toHaveLength(48)
})

it('run --show cannot be used with --no-wait', async () => {
  expect(usageErrorOf(await createHome().run('run image fox --no-wait --show'))).toContain('--show')
})

it.each<[string, string, RunOptions, string]>([
  ['in a pipe', '', { ...on(KITTY), tty: { stderr: true } }, 'the output does not go to a terminal'],
  ['with a log', '', { ...on(KITTY), tty: { stdout: true } }, 'the output does not go to a terminal'],
  ['in CI', '', on(KITTY, { CI: 'true' }), 'CI is set'],
  ['with NO_COLOR', '', on(KITTY, { NO_COLOR: '1' }), 'colour is off'],
  ['with TERM=dumb', '', on(KITTY, { TERM: 'dumb', FORCE_COLOR: '1' }), 'colour is off'],
  ['with --json', '--json', on(KITTY), ''],
  ['with --quiet', '--quiet', on(KITTY), ''],
])('no picture is drawn %s; --show says why', async (_, flag, options, reason) => {
  const { code, stderr } = await shared.run(`run image fox --show ${flag}`, options)
  expect(code).toBe(0)
  expect(stderr).not.toMatch(/\u001b[_P\]]|▀/)
  const notes = stderr.match(/Pictures are not drawn: .*/g) ?? []
  expect(notes).toEqual(reason === '' ? [] : [`Pictures are not drawn: ${reason}.`])
})

it.each<[string, () => Promise<Uint8Array>, readonly string[], RegExp]>([
  ['has too many pixels', () => claimingPng(65_000, 65_000), [], /: the picture has too many pixels\.$/m],
  ['is half a picture', async () => fox.subarray(0, 200), [], /: .+\.$/m],
  ['cannot be downloaded', async () => fox, ['output:404'], /: Could not download .+404/],
])('a result that %s is not drawn, with a note, and the run succeeds', async (_, bytes, faults, reason) => {
  const service = await serviceWith(await bytes())
  const { code, stderr } = await service.run('run image fox --show', { ...on(PLAIN), faults })
  expect(code).toBe(0)
  expect(stderr).not.toContain('▀')
  expect(/The result is not drawn.*/.exec(stderr)?.[0]).toMatch(reason)
})

it('a video is not drawn without ffmpeg, with a note', async () => {
  const service = await serviceWith(await tinyVideo(2), ['film.mp4'], 'video/mp4')
  const { code, stderr } = await service.run('run video fox --show', on(PLAIN))
  expect(code).toBe(0)
  expect(stderr).toContain('The result is not drawn: its first frame needs ffmpeg on PATH.')
})

it('wait --show draws the result, and without --show it does not', async () => {
  const service = await serviceWith()
  expect((await service.run('run image fox', on(PLAIN))).stderr).not.toContain('▀')
  expect((await service.run('wait --last --show', on(PLAIN))).stderr).toMatch(HALF_BLOCKS)
})

it('show --show draws the file of a run, sends nothing, and says if it is gone', async () => {
  const service = await serviceWith()
  const path = join(temporaryFolder(), 'fox.png')
  await service.run(`run image fox -o ${path}`)
  service.requests.length = 0
  const there = await service.run('show --last --show', on(PLAIN))
  expect(there.stderr).toMatch(HALF_BLOCKS)
  rmSync(path)
  const gone = await service.run('show --last --show', on(PLAIN))
  const [{ id } = {}] = service.rows()
  expect(gone.stderr).toBe('No result of this run is on this machine.\n')
  expect(service.requests).toEqual([])
  const again = await service.run(`download ${id} -o ${path} --show`, on(PLAIN))
  expect({ stdout: again.stdout, stderr: again.stderr }).toEqual({
    stdout: `${path}\n`,
    stderr: expect.stringMatching(HALF_BLOCKS),
  })
})

it('the command that resumes a run with --show has --show', async () => {
  const service = await createCliService({ engine: createCommandedEngine() })
  const { stderr } = await service.run('run image fox --show --timeout 1ms', on(PLAIN))
  expect(stderr).toMatch(/rushes wait --show run_\w+/)
})

it.each([
  [{}, 'half blocks'],
  [{ TERM: 'xterm-kitty' }, 'kitty'],
  [{ TERM_PROGRAM: 'ghostty' }, 'kitty'],
  [{ KONSOLE_VERSION: '230805' }, 'kitty'],
  [{ TERM_PROGRAM: 'iTerm.app' }, 'iterm2'],
  [{ TERM_PROGRAM: 'WezTerm' }, 'iterm2'],
  [{ LC_TERMINAL: 'iTerm2' }, 'iterm2'],
  [{ TERM_PROGRAM: 'vscode', LC_TERMINAL: 'iTerm2' }, 'half blocks'],
  [{ TMUX: '/tmp/tmux-0/default,1,0', KITTY_WINDOW_ID: '1' }, 'half blocks'],
  [{ STY: '1.pts', KITTY_WINDOW_ID: '1' }, 'half blocks'],
  [{ TERM: 'screen-256color', TERM_PROGRAM: 'iTerm.app' }, 'half blocks'],
] as const)('a terminal with the variables %j gets pictures as %s', (env, protocol) => {
  expect(protocolOf(env)).toBe(protocol)
})

it.each([
  [PLAIN, { columns: 80, rows: 24 }, [80, 24]],
  [PLAIN, { columns: 80, rows: 25 }, [80, 24]],
  [PLAIN, { columns: 20, rows: 1 }, [20, 2]],
  [PLAIN, { columns: 0, rows: undefined }, [80, 24]],
  [KITTY, { columns: 80, rows: 24 }, [640, 192]],
  [KITTY, { columns: 500, rows: 300 }, [2_000, 2_000]],
] as const)(
  'a picture in a terminal with the variables %j, of %j, has the size %j',
  (env, screen, [width, height]) => {
    expect(formFor(env, screen)).toMatchObject({ width, height })
  },
)
