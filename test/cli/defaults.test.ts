/** Each default stands in one place, and help and docs follow it. */
import { describe, expect, test, vi } from 'vitest'
import { fullName } from '../../src/cli/help/format-help.js'
import { DEFAULTS } from '../../src/protocol/defaults.js'
import { read } from '../support/project.js'

/** Another value for each default, and a command whose help shows it. */
const CHANGED: Readonly<Record<keyof typeof DEFAULTS, readonly [value: string, command: string]>> = {
  timeout: ['71m', 'rushes wait'],
  count: ['72', 'rushes run image'],
  unaskedRuns: ['73', 'rushes run image'],
  listLimit: ['74', 'rushes list'],
  spendGrouping: ['day', 'rushes spend'],
  galleryPage: ['page75.html', 'rushes gallery'],
  sessionRuns: ['77', 'rushes mcp'],
  host: ['127.0.0.78', 'rushes serve'],
  port: ['7879', 'rushes serve'],
  bodyLimit: ['81MiB', 'rushes serve'],
  role: ['worker', 'rushes serve'],
}

async function copies() {
  const { everyCommand } = await import('../support/project.js')
  const { withGeneratedParts } = await import('../docs/generated-parts.js')
  const helps = (await everyCommand()).map((each) => [fullName(each), each.helpInformation()] as const)
  const generated = (page: string) => withGeneratedParts(read(page))
  return {
    help: new Map(helps.map(([name, text]) => [name, text.replace(/\s+/g, ' ')])),
    commands: await generated('docs/commands.md'),
    settings: await generated('docs/environment.md'),
  }
}

describe('a changed default', async () => {
  const before = await copies()
  vi.resetModules()
  vi.doMock('../../src/protocol/defaults.js', () => ({
    DEFAULTS: Object.fromEntries(Object.entries(CHANGED).map(([name, [value]]) => [name, value])),
  }))
  const after = await copies()
  vi.doUnmock('../../src/protocol/defaults.js')
  vi.resetModules()

  test.each(Object.entries(CHANGED))('is that of the help: %s', (name, [value, command]) => {
    const shown = (text: string) => new RegExp(`(?<![\\w.])${text}(?![\\w.])`)
    expect(before.help.get(command)).toMatch(shown(DEFAULTS[name as keyof typeof DEFAULTS]))
    expect(before.help.get(command)).not.toContain(`default: ${value})`)
    expect(after.help.get(command)).toMatch(
      name === 'unaskedRuns' ? /more than 73 runs/ : shown(`default: ${value}\\)`),
    )
  })

  test('reaches the docs', () => {
    for (const value of ['74', 'day', 'page75.html', '77', '127.0.0.78', '7879', '81MiB', 'worker'])
      expect(after.commands).toContain(`(${value})`)
    expect(after.settings).toContain('| `71m` |')
  })
})
