/** Which sandbox, limits and engine agent sessions get: for admins. */
import type * as Api from './api.js';
import { randomId } from './bytes.js';
import type { Berth } from './client.js';

export type PolicySpec = Pick<Api.Policy, 'scope' | 'subject'> & Partial<Pick<Api.Policy, 'isolation' | 'profile' | 'runtime'>>;

export class Policies {
  constructor(private readonly client: Berth) {}

  /** All of them, the oldest first. */
  async list(): Promise<Api.Policy[]> {
    return (await this.client.json<{ policies: Api.Policy[] }>('GET', '/v1/policies')).policies;
  }

  /** About sessions that come later: what was decided for one before stays. */
  async add(policy: PolicySpec): Promise<Api.Policy> {
    return this.client.json('POST', '/v1/policies', { json: policy });
  }

  /** As it was. */
  async remove(id: number): Promise<Api.Policy> {
    return this.client.json('DELETE', `/v1/policies/${id}`, { key: randomId('rm_') });
  }
}
