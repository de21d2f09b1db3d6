/** The help pages, and the messages for a word that is nearly right. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { HELP } from '../../src/cli/help/examples.js'
import { fullName } from '../../src/cli/help/format-help.js'
import { createProgram } from '../../src/cli/program.js'
import { commandWord } from '../../src/cli/settings/globals.js'
import {
  type CommandLine,
  createHome,
  LOOPBACK_URL,
  lines,
  runCli,
  temporaryFolder,
  usageErrorOf,
  wordsOf,
} from '../support/index.js'
import { everyCommand, PARSE_ONLY, read } from '../support/project.js'

const help = async (line: CommandLine = []): Promise<string> => {
  const { code, stdout, stderr } = await runCli(line)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

it('`help agents` prints the skill for agents', async () => {
  expect(await help('help agents')).toBe(read('skills/rushes/SKILL.md'))
})

it('the help of the program fits a terminal of 50 lines with its prompt', async () => {
  const lines = (await help()).split('\n')
  expect(lines.length).toBeLessThanOrEqual(49)
  expect(lines.filter((line) => line.length > 80)).toEqual([])
})

it('the help of run fits 40 lines, and has the rare flags last', async () => {
  for (const kind of ['image', 'video']) {
    const lines = (await help(['run', kind, '--help'])).split('\n')
    expect(lines.length).toBeLessThanOrEqual(41)
    expect(lines.filter((line) => line.length > 80)).toEqual([])
    const flags = lines.flatMap((line) => /^ {2}(?:-\w, )?(--[\w-]+)/.exec(line)?.[1] ?? [])
    expect([flags[0], flags.at(-1)]).toEqual(['--prompt', '--yes'])
  }
})

/** The `rushes` of a pipe or a substitution, without redirections. */
const commandLines = (line: string): readonly string[] =>
  line
    .split(/ \| |<\(|\)$/)
    .map((part) => part.replace(/ [<>] .*$/, ''))
    .filter((part) => part.startsWith('rushes '))

async function parseErrors(lines: readonly string[]): Promise<readonly string[]> {
  const wrong: string[] = []
  for (const line of lines) {
    const words = wordsOf(line).slice(1)
    const program = await createProgram(commandWord(words), PARSE_ONLY)
    await program.parseAsync([...words], { from: 'user' }).catch((error: Error) => {
      wrong.push(`${line}: ${error.message}`)
    })
  }
  return wrong
}

it('the example of a command can be parsed and fits a terminal', async () => {
  const commands = await everyCommand()
  expect(commands.map(fullName)).toEqual(expect.arrayContaining(Object.keys(HELP)))
  for (const command of commands) {
    const [example = ''] = HELP[fullName(command)] ?? []
    expect(await parseErrors(commandLines(example))).toEqual([])
    expect(example.length).toBeLessThanOrEqual(80 - 'Example: '.length)
    if (example !== '') expect(command.helpInformation()).toContain(`\nExample: ${example}\n`)
  }
})

it('help has the global options in full for the program, and in one line for a command', async () => {
  expect(await help('--help')).toContain('\nGlobal options:\n  -V, --version     Print the version\n')
  expect(await help('status --help')).toContain(
    '\nGlobal options: --json, -q, --debug, --no-color, --profile, --base-url, --local,\n--engine\n',
  )
})

it.each([
  ['help run image', 'run image'],
  ['help admin account create', 'admin account create'],
  ['-h list', 'list'],
  ['--help run image', 'run image'],
  ['run --help image', 'run image'],
  ['run image --help -d', 'run image'],
])('rushes %s prints the help of %s', async (line, command) => {
  const text = await help(line)
  expect(text).toBe(await help(`${command} --help`))
  expect(text).toMatch(new RegExp(`^Usage: rushes ${command}[ \\n]`))
})

it.each(['help', '-h', ''])('rushes %s prints the help of the program', async (line) => {
  expect(await help(line)).toBe(await help('--help'))
})

it('rushes -V prints the version', async () => {
  expect(await help('-V')).toMatch(/^\d+\.\d+\.\d+\n$/)
})

it.each([
  '--help run image --prompt',
  'run --help image -- run',
  'help run image --model acme/still-1 -- "a fox"',
])('rushes %s creates no run', async (line) => {
  const { run, requests } = createHome({ answers: [] })
  await run(line)
  expect(requests).toEqual([])
})

it.each(['whoami --help', 'help whoami', 'help run whoami'])(
  'rushes %s is a usage error that names the unknown command',
  async (line) => {
    expect(usageErrorOf(await runCli(line))).toMatch(/Unknown command \S*"(rushes run )?whoami/)
  },
)

it.each([
  ['image "a fox"', 'image', 'rushes run image "a fox"'],
  ['run "a fox"', 'rushes run a fox', 'rushes run image "a fox"'],
  [['video', 'a "red" fox', '-d'], 'video', `rushes run video 'a "red" fox'`],
  ['ls', 'ls', 'rushes list'],
  ['logs run_1', 'logs', 'rushes status'],
  ['delete', 'delete', 'rushes forget'],
  ['whoami', 'whoami', 'rushes doctor'],
  ['help lst', 'lst', 'rushes list'],
  ['run vidoe', 'rushes run vidoe', 'rushes run video'],
  ['config gte baseUrl', 'rushes config gte', 'rushes config get'],
  ['xylophone', 'xylophone', undefined],
])(
  'an unknown command %j is a usage error of two lines, with the command that was meant',
  async (words, typed, meant) => {
    expect(lines(usageErrorOf(await runCli(words)))).toEqual([
      `error: Unknown command "${typed}".${meant === undefined ? '' : ` Did you mean \`${meant}\`?`}`,
      expect.stringMatching(/^ {2}See `rushes( run| config)? --help`\.$/),
    ])
  },
)

it.each<readonly [CommandLine, RegExp]>([
  ['run image x --qualty high', /Did you mean --quality\?/],
  ['run image x --quality hihg', /did you mean "high"/],
  [
    'run image x --steps 3 --local --model rushes/preview-image',
    /See `rushes models rushes\/preview-image --local`/,
  ],
  ['serve --role wroker', /Unknown role "wroker"\. Did you mean "worker"\?/],
  ['models rushes/preview-imag --local', /Did you mean "rushes\/preview-image"\?/],
])('the usage error of rushes %s names the word that was meant', async (line, message) => {
  const env = { RUSHES_IMAGE_MODEL: 'a/b', RUSHES_VIDEO_MODEL: 'a/b' }
  expect(usageErrorOf(await runCli(line, { env }))).toMatch(message)
})

it.each<readonly [CommandLine, string]>([
  [
    'run image --x-ray',
    'Unknown flag --x-ray.\n  If this is part of your prompt, put it after `--`. See `rushes run image --help`.',
  ],
  ['status --foo', 'Unknown flag --foo.\n  See `rushes status --help`.'],
  [
    'run image --api-key x',
    'Unknown flag --api-key.\n  If this is part of your prompt, put it after `--`. See `rushes run image --help`.',
  ],
  [
    'config set timeout',
    'Missing argument <value>.\n  Usage: `rushes config set <key> <value>`. See `rushes config set --help`.',
  ],
  [
    'config set timeout 5 m',
    'Too many arguments.\n  Usage: `rushes config set <key> <value>`. See `rushes config set --help`.',
  ],
  ['run image x --model', '--model <provider/name>: the value is missing.\n  See `rushes run image --help`.'],
  [
    'admin --data DIR account list',
    '--data must be written after `rushes admin account list`.\n  See `rushes admin account list --help`.',
  ],
  [
    'run image x --dry-run',
    'Not set: image model.\n  Set the model with --model <provider/name>, RUSHES_IMAGE_MODEL or `rushes config set ' +
      'models.image <provider/name>`. A local service (`rushes serve`) has rushes/preview-image. To use a model of this ' +
      'machine, add --local.',
  ],
  ['run', '`rushes run` needs a subcommand: video, image or model.\n  See `rushes run --help`.'],
  ['status', 'Missing run ids.\n  Give run ids or --last. `rushes list` shows the runs of this machine.'],
  ['completion powershell', 'Unknown shell "powershell". Use bash, zsh or fish.'],
])('the usage error of rushes %s says what to do', async (line, message) => {
  expect(usageErrorOf(await runCli(line))).toBe(`error: ${message}\n`)
})

it('login and config set create a profile, and config get and unset do not', async () => {
  const home = createHome({ env: {}, stdin: 'rk_test' })
  const run = async (line: string) => (await home.run(line)).code
  expect(await run(`login --no-verify --profile one --base-url ${LOOPBACK_URL}`)).toBe(0)
  expect(await run('config set timeout 5m --profile two')).toBe(0)
  expect(await run('config get baseUrl --profile one')).toBe(0)
  expect(await run('config unset timeout --profile three')).toBe(2)
})

it.each(['status run_1', 'config get baseUrl'])(
  'rushes %s with an unknown profile names the nearest one',
  async (line) => {
    const { run } = createHome({ config: '{"profiles":{"staging":{"timeout":"5m"}}}', env: {} })
    const message =
      'error: The config file has no profile "stagng". Did you mean "staging"?\n' +
      '  Profiles: default, staging. Create one with `rushes login --profile <name>` or `rushes config set <key> <value> --profile <name>`.\n'
    for (const each of [line, 'list'])
      expect(usageErrorOf(await run(`${each} --profile stagng`))).toBe(message)
    expect(usageErrorOf(await run(line, { env: { RUSHES_PROFILE: 'stagng' } }))).toBe(message)
    expect((await run(`${line} --profile staging`)).stderr).not.toContain('no profile')
  },
)

it('--only that selects no run names the nearest one', async () => {
  const manifest = join(temporaryFolder(), 'shots.yaml')
  writeFileSync(manifest, '- { name: fox, kind: image, model: a/b, prompt: x }')
  expect(usageErrorOf(await runCli(`batch ${manifest} --check --only fix`))).toContain(
    '--only fix does not match the name or output of any run. Did you mean "fox"?',
  )
})
