/** Words and values that look right and are not: other bytes, other dashes, quotes that belong to a file. */
import { expect, it } from 'vitest'
import { createHome, runCli, SET, usageErrorOf } from '../support/index.js'

it.each(['run image "a f\ufffdx"', 'run image "a fox" -o f\ufffdx.png', 'list --label=\ufffd'])(
  'an argument that is not UTF-8 is a usage error: %s',
  async (line) => {
    expect(usageErrorOf(await runCli(line, { env: SET }))).toMatch(
      /^error: The argument ".*" is not valid UTF-8\.$/m,
    )
  },
)

it('an argument that is not UTF-8 is a JSON error with --json', async () => {
  const ran = await runCli('run image \ufffd --json', { env: SET })
  expect(JSON.parse(usageErrorOf(ran)).error.exit_code).toBe(2)
})

it.each(['"rk_test"', "'rk_test'"])(
  'quotes around the key, as in an env file, are named and end a command with exit 4: %s',
  async (key) => {
    const { code, stderr } = await runCli('run image "a fox"', { env: { ...SET, RUSHES_API_KEY: key } })
    expect(code).toBe(4)
    expect(stderr).toContain('RUSHES_API_KEY has quotes around it')
    expect(stderr).not.toContain('rk_test')
  },
)

it.each(['"acme/still-1"', "'acme/still-1'"])(
  'quotes around the model, as in an env file, are a usage error that names them: %s',
  async (model) => {
    const env = { ...SET, RUSHES_IMAGE_MODEL: model }
    expect(usageErrorOf(await runCli('run image "a fox"', { env }))).toContain(
      `RUSHES_IMAGE_MODEL: the model name ${model} has quotes around it`,
    )
  },
)

it.each([
  ['\u2013n', '-n'],
  ['\u2014n', '-n'],
  ['\u2212n', '-n'],
  ['\u2014count', '--count'],
  ['\u2013\u2013count=3', '--count'],
])('%s is text of the prompt, with a warning that names the flag %s', async (word, flag) => {
  const { code, stdout, stderr } = await createHome({ answers: [] }).run(
    `run image "a fox" ${word} 3 --dry-run`,
  )
  expect(code).toBe(0)
  expect(JSON.parse(stdout).input.prompt).toBe(`a fox ${word} 3`)
  expect(stderr).toContain(
    `warning: "${word}" begins with another dash than "-", so it is text. The flag is ${flag}.`,
  )
})

it.each([
  ['before a word that is no flag', '"a fox" \u2013night'],
  ['after --', '-- "a fox" \u2013n'],
  ['alone', '"a fox" \u2014 "a hen"'],
  ['within a prompt', '"a fox \u2013n"'],
])('another dash than "-" brings no warning %s', async (_, prompt) => {
  const { code, stderr } = await createHome({ answers: [] }).run(`run image --dry-run ${prompt}`)
  expect([code, stderr.includes('dash')]).toEqual([0, false])
})
