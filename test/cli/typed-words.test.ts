/** Words and values that look right and are not: other bytes, other dashes, quotes that belong to a file. */
import { expect, it } from 'vitest'
import { createCliService, runCli, SET } from '../support/index.js'

it.each([
  ['a prompt', ['run', 'image', 'a f\ufffdx']],
  ['-o', ['run', 'image', 'a fox', '-o', 'f\ufffdx.png']],
  ['--label', ['list', '--label=\ufffd']],
])('an argument that is not UTF-8 is exit 2 and sends nothing: %s', async (_, argv) => {
  const { code, stdout, stderr } = await runCli(argv, { env: SET })
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toMatch(/^error: The argument ".*" is not valid UTF-8\.$/m)
})

it('an argument that is not UTF-8 is a JSON error with --json', async () => {
  const { code, stderr } = await runCli(['run', 'image', '\ufffd', '--json'], { env: SET })
  expect([code, JSON.parse(stderr).error.exit_code]).toEqual([2, 2])
})

it.each(['"rk_test"', "'rk_test'"])(
  'quotes of an env file around the key are exit 4 and named: %s',
  async (key) => {
    const { code, stderr } = await runCli('run image "a fox"', { env: { ...SET, RUSHES_API_KEY: key } })
    expect(code).toBe(4)
    expect(stderr).toContain('RUSHES_API_KEY has quotes around it')
    expect(stderr).not.toContain('rk_test')
  },
)

it.each(['"acme/still-1"', "'acme/still-1'"])(
  'quotes of an env file around the model are exit 2 and named: %s',
  async (model) => {
    const env = { ...SET, RUSHES_IMAGE_MODEL: model }
    const { code, stderr } = await runCli('run image "a fox"', { env })
    expect(code).toBe(2)
    expect(stderr).toContain(`RUSHES_IMAGE_MODEL: the model name ${model} has quotes around it`)
  },
)

it.each([
  ['\u2013n', '-n'],
  ['\u2014n', '-n'],
  ['\u2212n', '-n'],
  ['\u2014count', '--count'],
  ['\u2013\u2013count=3', '--count'],
  ['\u2014json', '--json'],
])(
  'a word with another dash before the name of a flag is text of the prompt, with a warning: %s',
  async (word, flag) => {
    const service = await createCliService()
    const { code, stdout, stderr } = await service.run(['run', 'image', 'a fox', word, '3', '--dry-run'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout).input.prompt).toBe(`a fox ${word} 3`)
    expect(stderr).toContain(
      `warning: "${word}" begins with another dash than "-", so it is text. The flag is ${flag}.`,
    )
  },
)

it.each([
  ['before no name of a flag', ['a fox', '\u2013night']],
  ['after --', ['--', 'a fox', '\u2013n']],
  ['alone', ['a fox', '\u2014', 'a hen']],
  ['within a prompt', ['a fox \u2013n']],
])('a word with another dash before the name of a flag is not warned of %s', async (_, words) => {
  const service = await createCliService()
  const { code, stderr } = await service.run(['run', 'image', '--dry-run', ...words])
  expect([code, stderr.includes('dash')]).toEqual([0, false])
})
