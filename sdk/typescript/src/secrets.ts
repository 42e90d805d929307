/** Credentials that are added to requests outside of sandboxes. */
import type * as Api from './api.js';
import { randomId } from './bytes.js';
import type { Berth } from './client.js';

export class Secrets {
  constructor(private readonly client: Berth) {}

  /** All of this key's owner, without their values. */
  async list(): Promise<Api.Secret[]> {
    return (await this.client.json<{ secrets: Api.Secret[] }>('GET', '/v1/secrets')).secrets;
  }

  /** Goes out with the next request of every sandbox whose policy names it; nobody is told the value again. */
  async set(name: string, secret: Omit<Api.SecretSpec, 'header'> & { header?: string }): Promise<Api.Secret> {
    return this.client.json('PUT', path(name), { json: { header: 'Authorization', ...secret }, key: randomId('secret_') });
  }

  /** A sandbox whose policy names it reaches nothing until it does not. */
  async remove(name: string): Promise<Api.Secret> {
    return this.client.json('DELETE', path(name));
  }
}

const path = (name: string): string => `/v1/secrets/${encodeURIComponent(name)}`;
