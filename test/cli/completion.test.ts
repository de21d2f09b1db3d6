/** What `rushes __complete` answers; the shells themselves are in test/e2e/completion.test.ts. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { COMMANDS } from '../../src/cli/commands/index.js'
import { isRepeatable, sourceOfArgument, sourceOfOption } from '../../src/cli/completion/index.js'
import { createProgram } from '../../src/cli/program.js'
import type { RunState } from '../../src/protocol/run-state.js'
import { filesBelow } from '../support/binary.js'
import { runCli } from '../support/cli.js'
import { addRow, withJournal } from '../support/journal.js'
import { temporaryFolder } from '../support/temporary-folder.js'

/** Values of flags by their name in the help, and arguments, that are free text. */
const WITHOUT_COMPLETION = [
  ...[
    '<account>',
    '<address>',
    '<amount>',
    '<cidr>',
    '<duration>',
    '<glob>',
    '<kind=engine>',
    '<kind=name>',
    '<n>',
    '<port>',
    '<rate>',
    '<size>',
  ],
  ...[
    '<spec>',
    '<text>',
    '<url>',
    'admin account ban name',
    'admin account create name',
    'admin account unban name',
    'admin credits add account',
    'admin credits add n',
    'admin credits list account',
    'admin key disable key',
    'admin key enable key',
    'admin key set key',
    'admin run adopt id',
    'admin run adopt upstream-id',
    'admin run cancel id',
    'admin run refund id',
    'admin user add email',
    'admin user link email',
    'admin user remove email',
  ],
  ...['config set value', 'models save file', 'models save name', 'models search words'],
  ...['run image prompt', 'run video prompt'],
]

interface Answer {
  readonly values: readonly string[]
  readonly abouts: readonly string[]
  readonly end: string
}

async function complete(
  words: readonly string[],
  options: { readonly home?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Answer> {
  const { code, stdout, stderr } = await runCli(['__complete', ...words], options)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const lines = stdout.split('\n').slice(0, -1)
  const cells = lines.slice(0, -1).map((line) => line.split('\t'))
  return {
    values: cells.map(([value = '']) => value),
    abouts: cells.map(([, about = '']) => about),
    end: lines.at(-1) ?? '',
  }
}

const valuesOf = async (words: readonly string[], home?: string) =>
  (await complete(words, home === undefined ? {} : { home })).values

const HERE = 'https://api.example.com'

const succeeded = (id: string): RunState => ({
  id,
  status: 'succeeded',
  phase: 'succeeded',
  urls: ['https://cdn.example/a.png'],
  failure: undefined,
  createdAt: undefined,
  finishedAt: undefined,
  service: {},
})

/** Rows by id and how far they came, the oldest first. */
function homeWith(
  rows: readonly {
    id?: string
    phase: 'running' | 'succeeded' | 'unconfirmed'
    address?: string
    prompt?: string
  }[],
): string {
  const home = temporaryFolder()
  withJournal(home, (journal) => {
    for (const { id = '', phase, address = HERE, prompt = 'a fox' } of rows) {
      const row = journal.intend({
        address,
        profile: 'default',
        kind: 'image',
        model: 'acme/still-1',
        input: { prompt },
      })
      if (phase === 'unconfirmed')
        journal.markUnconfirmed(row, { code: 'submission_unknown', message: 'lost' })
      else journal.accept(row, id, 'queued')
      if (phase === 'succeeded') journal.recordStatus(address, { state: succeeded(id) })
    }
  })
  return home
}

describe('commands and flags', () => {
  it('match the help, with its descriptions', async () => {
    const { values, abouts, end } = await complete([''])
    expect(values).toEqual([...COMMANDS.map(({ name }) => name), 'help'])
    expect(abouts.slice(0, -1)).toEqual(COMMANDS.map(({ about }) => about))
    expect(end).toBe(':none')
  })

  it.each<readonly [string, readonly string[], readonly string[]]>([
    ['a command', ['li'], ['list']],
    ['a command after global flags', ['--profile', 'x', '--json', 'li'], ['list']],
    ['a subcommand', ['run', ''], ['video', 'image', 'model']],
    ['a subcommand after a flag', ['run', '--json', 'i'], ['image']],
    ['nothing after a word that is no command', ['nosuch', 'l'], []],
    ['a flag of a subcommand', ['run', 'image', '--qua'], ['--quality']],
    ['a flag after the prompt', ['run', 'image', 'a fox', '--asp'], ['--aspect-ratio']],
    ['a flag of another model', ['run', 'image', '--res'], []],
    ['no flag that was given', ['run', 'image', '--quality', 'high', '--qua'], []],
    ['no flag that was given with =', ['run', 'image', '--quality=high', '--qua'], []],
    ['a flag that may be repeated', ['run', 'image', '-i', 'a.png', '--image'], ['--image-url']],
    ['a short flag', ['run', 'image', '-n'], ['-n']],
    ['no flag after --', ['run', 'image', '--', '--qua'], []],
    ['no flag in the place of a value', ['run', 'image', '--prompt', '--qua'], []],
    ['values of the schema', ['run', 'video', '--resolution', ''], ['720p', '1080p']],
    ['values after =', ['run', 'video', '--resolution=10'], ['--resolution=1080p']],
    ['values with a colon', ['run', 'image', '--aspect-ratio', '16:'], ['16:9']],
    ['the value after short flags', ['run', 'image', '-dn', ''], []],
    ['a flag that the help shows only with --all', ['serve', '--trust'], ['--trust-proxy']],
    ['choices', ['serve', '--log-level', 'd'], ['debug']],
    ['kinds', ['list', '--kind', ''], ['video', 'image']],
    ['models', ['models', ''], ['add', 'import', 'search', 'save', 'remove', 'video', 'image']],
    ['a provider', ['models', 'import', ''], ['fal:', 'replicate:']],
    ['shells', ['completion', ''], ['bash', 'zsh', 'fish']],
    ['keys of the config', ['config', 'get', 'models.'], ['models.video', 'models.image']],
    ['one key, not two', ['config', 'get', 'timeout', ''], []],
    ['a topic', ['help', 'exit'], ['exit-codes']],
    ['another topic', ['help', 'env'], ['environment']],
    ['commands to be helped with', ['help', 'sta'], ['status']],
  ])('%s', async (_, words, values) => expect(await valuesOf(words)).toEqual(values))

  it.each([
    [['run', 'image', '--prompt-file', ''], ':files '],
    [['run', 'video', '-i', 'pic'], ':files '],
    [['run', 'image', '--output=out/'], ':files --output='],
    [['run', 'image', '--input', '@in'], ':files @'],
    [['run', 'image', '--input=@in'], ':files --input=@'],
    [['run', 'image', '--input', '{'], ':none'],
    [['batch', ''], ':files '],
    [['serve', '--data', ''], ':folders '],
    [['run', 'image', ''], ':none'],
  ])('%j ends in %j', async (words, end) => expect((await complete(words)).end).toBe(end))

  it('know of every value what it can be', async () => {
    const missing: string[] = []
    const uncompleted = new Set<string>()
    const walk = (command: Command, path: readonly string[]): void => {
      const help = command.createHelp()
      for (const option of help.visibleOptions(command)) {
        if ((option.required || option.optional) && sourceOfOption(option) === undefined)
          uncompleted.add(/[<[].+[>\]]$/.exec(option.flags)?.[0] ?? option.flags)
        const saysSo = option.description.includes('(repeatable')
        if (saysSo !== isRepeatable(option)) missing.push(`${option.flags}: repeatable?`)
      }
      for (const argument of command.registeredArguments)
        if (sourceOfArgument(path, argument) === undefined)
          uncompleted.add([...path, argument.name()].join(' '))
      for (const child of command.commands) walk(child, [...path, child.name()])
    }
    for (const { name } of COMMANDS) {
      const program = await createProgram(name, { run: async () => {}, print: () => {} })
      for (const command of program.commands) if (command.name() === name) walk(command, [name])
    }
    expect(missing).toEqual([])
    // A new name needs a row in the completion, or one here.
    expect([...uncompleted].sort()).toEqual(WITHOUT_COMPLETION)
  })
})

describe('runs', () => {
  let known: string
  beforeAll(() => {
    known = homeWith([
      { id: 'run_old', phase: 'succeeded', prompt: 'a\tred\nfox \u001b[31m' },
      { id: 'run_going', phase: 'running' },
      { phase: 'unconfirmed' },
      { id: 'elsewhere', phase: 'running', address: 'https://other.example' },
    ])
  })

  it.each<readonly [string, readonly string[], readonly string[]]>([
    ['every id', ['status', ''], ['elsewhere', 'run_going', 'run_old']],
    ['of the address on the line', ['status', '--base-url', HERE, ''], ['run_going', 'run_old']],
    ['of the address on the line, with =', [`--base-url=${HERE}/`, 'status', ''], ['run_going', 'run_old']],
    ['of the local service', ['status', '--local', ''], []],
    ['none twice', ['status', 'run_going', 'run'], ['run_old']],
    ['those that go on, to be waited for', ['wait', 'r'], ['run_going']],
    ['others too, where none that goes on is called so', ['wait', 'run_o'], ['run_old']],
    ['finished ones, to be downloaded', ['download', ''], ['run_old']],
    ['outputs of earlier runs', ['run', 'video', '-i', 'run:'], ['run:run_old']],
    ['finished ones, to be opened', ['open', ''], ['run_old']],
    ['statuses', ['list', '--status', 's'], ['succeeded']],
    ['models', ['run', 'image', '--model', ''], ['acme/still-1']],
    ['no models of the other kind', ['run', 'video', '--model', ''], []],
  ])('%s', async (_, words, values) => expect(await valuesOf(words, known)).toEqual(values))

  it.each(['forget', 'show'])('of every address, and keys of unconfirmed rows, for %s', async (command) => {
    expect(await valuesOf([command, ''], known)).toEqual([
      'elsewhere',
      expect.stringMatching(/^~[0-9a-f]{4,}$/),
      'run_going',
      'run_old',
    ])
  })

  it('come from the local service when RUSHES_LOCAL is set', async () => {
    const home = homeWith([
      { id: 'run_here', phase: 'running' },
      { id: 'run_local', phase: 'running', address: 'local' },
    ])
    const offered = async (words: readonly string[]) =>
      (await complete(words, { home, env: { RUSHES_LOCAL: '1' } })).values
    expect(await offered(['status', ''])).toEqual(['run_local'])
    expect(await offered(['status', '--base-url', HERE, ''])).toEqual(['run_here'])
  })

  it('have a description of one printable line', async () => {
    expect((await complete(['download', ''], { home: known })).abouts).toEqual([
      'succeeded image a red fox [31m',
    ])
  })

  it('leave out ids in which a shell could read more than a word', async () => {
    const hostile = [
      '$(touch x)',
      '`id`',
      '-rf',
      'a b',
      'a;b',
      "a'b",
      'a"b',
      'a\\b',
      'a|b',
      'a*',
      '%s&',
      'ok_1',
    ]
    const rows = hostile.map((id) => ({ id, phase: 'running' as const }))
    expect(await valuesOf(['status', ''], homeWith(rows))).toEqual(['ok_1'])
  })
})

describe('labels', () => {
  const withLabels = (...rows: readonly (readonly string[])[]): string => {
    const home = temporaryFolder()
    rows.forEach((labels, at) => {
      addRow(home, { id: `run_${at}`, labels })
    })
    return home
  }

  it.each([
    ['list', '--label'],
    ['spend', '--label'],
    ['wait', '--all', '--label'],
    ['forget', '--label'],
    ['gallery', '--label'],
    ['run', 'image', '--label'],
  ])('of the journal, the newest first: %j', async (...words) => {
    const home = withLabels(['a'], ['b', 'Frühling 春'], [], ['a'])
    expect(await valuesOf([...words, ''], home)).toEqual(['a', 'Frühling 春', 'b'])
    expect(await valuesOf([...words, 'F'], home)).toEqual(['Frühling 春'])
  })

  it('leave out labels that a shell or a completion script would execute', async () => {
    const hostile = ['$(id)', '`id`', 'a"b', "a'b", 'a\\b', 'a!b', ':files /', 'a;b & c|d *']
    expect(await valuesOf(['list', '--label', ''], withLabels(hostile))).toEqual(['a;b & c|d *'])
  })
})

describe('profiles', () => {
  const withConfig = (text: string): string => {
    const home = temporaryFolder()
    mkdirSync(join(home, 'config'))
    writeFileSync(join(home, 'config', 'config.json'), text)
    return home
  }
  const config = {
    profiles: {
      default: {},
      staging: { baseUrl: 'https://staging.example.com', models: { image: 'acme/still-2' } },
      '-x': {},
      'a\nb': {},
    },
  }

  it('come from the config file', async () => {
    const { values, abouts } = await complete(['list', '--profile', ''], {
      home: withConfig(JSON.stringify(config)),
    })
    expect(values).toEqual(['default', 'staging'])
    expect(abouts).toEqual(['', 'https://staging.example.com'])
  })

  it('say which model is offered, as the line and the environment do', async () => {
    const home = withConfig(JSON.stringify(config))
    const words = ['run', 'image', '--profile', 'staging', '--model', '']
    expect(await valuesOf(words, home)).toEqual(['acme/still-2'])
    const env = { RUSHES_IMAGE_MODEL: 'acme/still-3' }
    expect((await complete(words, { home, env })).values).toEqual(['acme/still-3'])
  })

  it.each(['{', '[]', '{"profiles":[1]}', '"x"', ''])(
    'leave all out of a file that holds %j',
    async (text) => {
      expect(await valuesOf(['--profile', ''], withConfig(text))).toEqual([])
    },
  )
})

describe('trouble', () => {
  it('leaves no trace: no state folder, no journal', async () => {
    const home = temporaryFolder()
    for (const words of [
      ['wait', ''],
      ['--profile', ''],
      ['run', 'video', '-i', 'run:'],
    ])
      await complete(words, { home })
    expect(existsSync(join(home, 'state'))).toBe(false)
    expect(filesBelow(home)).toEqual([])
  })

  it('does not change a journal, and says nothing of one that is damaged or of another format', async () => {
    const home = temporaryFolder()
    mkdirSync(join(home, 'state'))
    for (const text of ['', 'no database at all', 'SQLite format 3\u0000']) {
      writeFileSync(join(home, 'state', 'journal.db'), text)
      expect(await valuesOf(['wait', ''], home)).toEqual([])
      expect(filesBelow(join(home, 'state'))).toEqual(['journal.db'])
    }
  })

  it('prints no error, whatever the line is', async () => {
    const word = fc.oneof(
      fc.constantFrom(
        'run',
        'image',
        'video',
        'help',
        '--',
        '-',
        '--json',
        '--profile',
        '--model=',
        '-dn',
        '',
        '__complete',
        'config',
        'get',
      ),
      fc.string(),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(word, { maxLength: 6 }), async (words) => {
        const { end } = await complete(words)
        expect(end).toMatch(/^:(none$|files |folders )/)
      }),
    )
  })
})
