/** Health checks for operators: without a key, without a rate limit, and without data about runs. */
import type { FastifyInstance } from 'fastify'
import { Refusal } from '../rules/refusal.js'

export const HEALTH_PATH = '/healthz'
export const READY_PATH = '/readyz'

export interface HealthRoutes {
  /** False or a rejection when the service cannot take requests: the database fails, or the service closes. */
  isReady(): Promise<boolean>
}

export async function addHealthRoutes(app: FastifyInstance, { isReady }: HealthRoutes): Promise<void> {
  app.addHook('onSend', async (_request, reply) => void reply.header('cache-control', 'no-store'))
  app.get(HEALTH_PATH, async () => ({ status: 'ok' }))
  app.get(READY_PATH, async () => {
    if (!(await isReady().catch(() => false))) throw new Refusal('not_ready')
    return { status: 'ready' }
  })
}
