/** The topics of `rushes help`, and what is said to a word that is nearly right. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { agents } from '../../src/cli/help/agents.js'
import { EXIT_MEANINGS } from '../../src/cli/help/exit-codes.js'
import { SCRIPTING } from '../../src/cli/help/scripting.js'
import { TOPICS } from '../../src/cli/help/topics.js'
import { createProgram } from '../../src/cli/program.js'
import { FURTHER_ENVIRONMENT, SETTINGS, SHARED_ENVIRONMENT } from '../../src/cli/settings/table.js'
import { EXIT, OWN_CODES } from '../../src/errors.js'
import { PROBLEMS } from '../../src/protocol/problems.js'
import { runCli } from '../support/cli.js'
import { withJournal } from '../support/journal.js'
import { temporaryFolder } from '../support/service.js'

const doc = (name: string): string => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')

const help = async (...words: string[]): Promise<string> => {
  const { code, stdout, stderr } = await runCli(words)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

describe('every topic', () => {
  it.each(TOPICS.map(({ name }) => name))('%s is printed, and named by the help', async (name) => {
    const text = await help('help', name)
    expect(text).toMatch(/^\S[\s\S]*[^\n]\n$/)
    expect(text).not.toMatch(/undefined|\[object|[ \t]$/m)
    expect(await help('--quiet', 'help', name)).toBe(text)
    expect(await help()).toContain(name)
  })

  it('is not taken for the value of a flag', async () => {
    expect(await help('--profile', 'x', 'help', 'agents')).toBe(agents())
    expect((await runCli(['--profile', 'help', 'agents'])).code).toBe(2)
    expect((await runCli(['run', 'help', 'agents'])).stdout).not.toBe(agents())
  })

  it.each(['exit-codes', 'environment', 'scripting'])(
    '%s fits a terminal and has no Markdown',
    async (name) => {
      const text = await help('help', name)
      // An example of JSON is not cut.
      const prose = text.split('\n').filter((line) => !line.includes('{"'))
      expect(prose.filter((line) => line.length > 84)).toEqual([])
      expect(text).not.toMatch(/`|\]\(/)
    },
  )
})

describe('exit-codes', () => {
  it('has every code', async () => {
    const text = await help('help', 'exit-codes')
    const words = [...Object.keys(OWN_CODES), ...Object.keys(PROBLEMS)]
    expect(words.filter((word) => !text.includes(`\n  ${word} `))).toEqual([])
    expect(Object.values(EXIT).filter((code) => !text.includes(`\n  ${String(code).padEnd(5)}`))).toEqual([])
  })

  it('says what docs/exit-codes.md says', () => {
    const rows = (Object.keys(EXIT) as (keyof typeof EXIT)[]).map(
      (name) =>
        `\n| ${EXIT[name]} | \`${name}\` | ${EXIT_MEANINGS[name].happened} | ${EXIT_MEANINGS[name].next} |\n`,
    )
    expect(rows.filter((row) => !doc('exit-codes.md').includes(row))).toEqual([])
  })
})

describe('environment', () => {
  it('has every variable and every key', async () => {
    const text = await help('help', 'environment')
    const words = Object.values<{ environment?: string; key?: string }>(SETTINGS)
      .flatMap(({ environment, key }) => [environment, key])
      .concat(Object.keys(FURTHER_ENVIRONMENT), Object.keys(SHARED_ENVIRONMENT))
    expect(words.filter((word) => word !== undefined && !text.includes(`\n  ${word} `))).toEqual([])
  })

  it('says what docs/environment.md says', () => {
    const rows = Object.entries({ ...FURTHER_ENVIRONMENT, ...SHARED_ENVIRONMENT }).map(
      ([names, about]) =>
        `\n| ${names
          .split(', ')
          .map((name) => `\`${name}\``)
          .join(', ')} | ${about} |\n`,
    )
    expect(rows.filter((row) => !doc('environment.md').includes(row))).toEqual([])
  })
})

describe('scripting and agents', () => {
  it('docs/scripting.md begins with what the help prints', () => {
    expect(doc('scripting.md')).toContain(`\n\`\`\`\n${SCRIPTING}\`\`\`\n`)
  })

  it('docs/agents.md is what the help prints', async () => {
    await expect(agents()).toMatchFileSnapshot('../../docs/agents.md')
  })

  it('agents is short enough to be read whole, and knows every exit code', () => {
    expect(agents().length).toBeLessThan(8_000)
    expect(Object.values(EXIT).filter((code) => !agents().includes(`\n| ${code} |`))).toEqual([])
  })
})

describe('every example', () => {
  /** Without the parts of a pipe that are others'. */
  const linesOf = (text: string): readonly string[] =>
    text
      .split('\n')
      .filter((line) => /^( {2})?rushes (run|wait|list|status)/.test(line))
      .flatMap((line) => line.trim().split(/ {2,}/)[0]?.split(' | ') ?? [])
      .filter((line) => line.startsWith('rushes '))

  const inText = (text: string): readonly string[] =>
    [...text.matchAll(/`(rushes [a-z][^`]*)`/g)].map(([, line = '']) => line)

  const wordsOf = (line: string): readonly string[] =>
    [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? '')

  const plainText = async () => [await help(), await help('help', 'scripting'), agents()]

  it('can be parsed', async () => {
    const texts = await plainText()
    const lines = [...texts.flatMap(linesOf), ...inText(agents())]
      // What stands for a command, or for the rest of one.
      .filter((line) => !/<command>|\.\.\. --no-wait|^rushes (config|login)$|^rushes help/.test(line))
    expect(lines.length).toBeGreaterThan(20)
    const wrong: string[] = []
    for (const line of lines) {
      const words = wordsOf(line).slice(1)
      const program = await createProgram(words[0], { run: async () => {}, print: () => {} })
      await program.parseAsync([...words], { from: 'user' }).catch((error: Error) => {
        wrong.push(`${line}: ${error.message}`)
      })
    }
    expect(wrong).toEqual([])
  })
})

describe('help of commands', () => {
  it.each([['run'], ['list']])('%s is what --help prints', async (name) => {
    expect(await help('help', name)).toBe(await help(name, '--help'))
  })

  it('by itself is the help of the program', async () => {
    expect(await help('help')).toBe(await help('--help'))
  })
})

describe('a word that is nearly right', () => {
  it.each<readonly [readonly string[], RegExp]>([
    [['rnu'], /did you mean run\?/i],
    [['run', 'vidoe'], /did you mean video\?/i],
    [['help', 'exit-code'], /no help about "exit-code"; the nearest is exit-codes/],
    [['help', 'lst'], /the nearest is list/],
    [['run', 'image', 'x', '--qualty', 'high'], /did you mean --quality\?/i],
    [['--josn', 'list'], /did you mean --json\?/i],
    [['run', 'image', 'x', '--quality', 'hihg'], /nearest: high/],
    [['run', 'video', 'x', '--aspect-ratio', '16x9'], /nearest: 16:9/],
    [['list', '--kind', 'imge'], /nearest: image/],
    [['serve', '--log-level', 'wran'], /nearest: warn/],
    [['serve', '--fault', 'creat:429'], /nearest: create/],
    [['models', 'imag'], /the nearest is image/],
    [['config', 'get', 'baseurl'], /the nearest is baseUrl/],
    [['config', 'gte', 'baseUrl'], /did you mean get\?/i],
    [['completion', 'bsh'], /nearest: bash/],
  ])('%j: %s', async (words, said) => {
    const { code, stdout, stderr } = await runCli(words, {
      env: { RUSHES_IMAGE_MODEL: 'a/b', RUSHES_VIDEO_MODEL: 'a/b' },
    })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(said)
  })

  it('names nothing where nothing is near', async () => {
    const { code, stderr } = await runCli(['help', 'xylophone'])
    expect(code).toBe(2)
    expect(stderr).not.toContain('nearest')
  })
})

describe('a profile that is not in the config file', () => {
  it.each<readonly [readonly string[]]>([[['status', 'run_1']], [['config', 'get', 'baseUrl']]])(
    '%j names the nearest',
    async (words) => {
      const home = temporaryFolder()
      await runCli(['config', 'set', 'timeout', '5m', '--profile', 'staging'], { home })
      const { code, stderr } = await runCli([...words, '--profile', 'stagng'], { home })
      expect(code).toBe(2)
      expect(stderr).toContain('The config file has no profile "stagng"; the nearest is staging.')
      expect((await runCli([...words, '--profile', 'staging'], { home })).stderr).not.toContain('no profile')
    },
  )
})

it('a status that no run has is no error, and the nearest is named', async () => {
  const home = temporaryFolder()
  const input = { prompt: 'a fox' }
  const row = {
    address: 'https://api.example.com',
    profile: 'default',
    kind: 'image',
    model: 'acme/still-1',
    input,
  }
  withJournal(home, (journal) => journal.accept(journal.intend(row), 'run_1', 'queued'))
  const list = async (status: string) => runCli(['list', '--status', status], { home })
  expect(await list('queud')).toMatchObject({
    code: 0,
    stdout: '',
    stderr: 'No runs have the status "queud". Did you mean "queued"?\n',
  })
  expect(await list('processing')).toMatchObject({ code: 0, stdout: '', stderr: '' })
  expect((await list('queued')).stderr).toBe('')
})

it('--only that means no run names the nearest', async () => {
  const folder = temporaryFolder()
  writeFileSync(
    join(folder, 'shots.json'),
    JSON.stringify([{ name: 'fox', kind: 'image', model: 'a/b', prompt: 'x' }]),
  )
  const { code, stderr } = await runCli(['batch', join(folder, 'shots.json'), '--check', '--only', 'fix'])
  expect(code).toBe(2)
  expect(stderr).toContain('no run of the manifest has such a name or output; the nearest is fox.')
})
