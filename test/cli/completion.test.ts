/** What `rushes completion` prints; the shells themselves are in test/e2e/completion.test.ts. */
import { expect, it } from 'vitest'
import { fullName } from '../../src/cli/help/format-help.js'
import { runCli } from '../support/index.js'
import { everyCommand } from '../support/project.js'

it.each(['bash', 'zsh', 'fish'])('the script of %s has each command, flag and fixed value', async (shell) => {
  const { code, stdout, stderr } = await runCli(['completion', shell])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const words = new Set(stdout.replaceAll('\\:', ':').match(/[\w.:/-]+/g))
  const missing = (await everyCommand()).flatMap((command) => {
    const options = command.createHelp().visibleOptions(command)
    const flags = options.map(({ long }) => (shell === 'fish' ? long?.slice(2) : long))
    const values = options.flatMap(({ argChoices }) => argChoices ?? [])
    return [command.name(), ...flags, ...values]
      .filter(
        (word) =>
          word !== undefined && ![...words].some((each) => each === word || each.startsWith(`${word}:`)),
      )
      .map((word) => `${fullName(command)} ${word}`)
  })
  expect(missing).toEqual([])
})
