/** A service address that was copied with the path of the API. */
import { describe, expect, it } from 'vitest'
import { addressHint } from '../../src/cli/settings/address-hint.js'
import { createCliService, LOOPBACK_URL, runCli } from '../support/cli.js'

describe('the hint', () => {
  it.each([
    ['https://a.example/api/v1', 'https://a.example'],
    ['https://a.example/api', 'https://a.example'],
    ['https://a.example/x/api/v1/runs', 'https://a.example/x'],
  ])('%s: use %s', (address, use) => {
    expect(addressHint(address)).toMatch(new RegExp(` Use ${use}$`))
  })

  it.each(['https://a.example', 'https://api.example', 'https://a.example/v1', 'https://a.example/myapi'])(
    '%s needs none',
    (address) => expect(addressHint(address)).toBeUndefined(),
  )
})

describe('is printed once', () => {
  const said = `warning: The service address ends in /api/v1, but rushes adds /api/v1 itself. Use ${LOOPBACK_URL}\n`

  it('when a command reads the address, and the command continues', async () => {
    const { run } = await createCliService()
    const { stderr } = await run(['status', 'run_1'], { env: { RUSHES_BASE_URL: `${LOOPBACK_URL}/api/v1/` } })
    expect(stderr.split(said)).toHaveLength(2)
    expect(stderr).toContain('error: ')
  })

  it('when the address is set', async () => {
    const ran = await runCli(['config', 'set', 'baseUrl', `${LOOPBACK_URL}/api/v1`])
    expect(ran).toMatchObject({ code: 0, stdout: '', stderr: said })
  })
})
