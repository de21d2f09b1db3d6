/** `rushes doctor` with a rate limit that is shared on a Redis server. */
import { expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { createCliService } from '../support/cli.js'
import { describeAnyRedis } from '../support/redis.js'

describeAnyRedis('doctor, with a shared rate limit', (url) => {
  it('runs the script on the server, and takes no slot', async () => {
    const service = await createCliService()
    // The service goes by the wall clock, and the command by a manual one.
    const fetch: Fetch = async (request) => {
      const response = await service.fetch(request)
      const date = new Date(service.clock.now()).toUTCString()
      return { ...response, header: (name) => (name === 'date' ? date : response.header(name)) }
    }
    const { code, stdout, stderr } = await service.run(['doctor', '--json'], {
      env: { RUSHES_LIMITS_URL: await url() },
      fetch,
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines: readonly { readonly check: string }[] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.find(({ check }) => check === 'rate limit')).toMatchObject({
      status: 'ok',
      message: expect.stringMatching(/^shared between machines, redis:\/\/.* \(\d+ ms\)$/),
    })
  })
})
