/** Charges as FinOps FOCUS 1.1: the file that `corral usage -o focus` writes (`corral/cli/focus_columns.py`). */

import type { Charge } from '../api/types';
import { csv } from './usage';

const METERS: Record<string, { unit: string; name: string }> = {
  'device-hours': { unit: 'Device-Hours', name: 'Device-hours' },
  'cpu-hours': { unit: 'Core-Hours', name: 'CPU-hours requested' },
  'memory-gib-hours': { unit: 'GiB-Hours', name: 'Memory requested' },
};
const ISSUER = 'Corral';

/** The columns in order, each with the value of a charge. */
const COLUMNS: Record<string, (charge: Charge, currency: string, account: string) => string | number | null> = {
  BilledCost: ({ cost }) => plain(cost),
  BillingAccountId: (_, __, account) => account,
  BillingAccountName: () => null,
  BillingCurrency: (_, currency) => currency,
  BillingPeriodEnd: ({ begin }) => month(begin, 1),
  BillingPeriodStart: ({ begin }) => month(begin, 0),
  ChargeCategory: () => 'Usage',
  ChargeClass: () => null,
  ChargeDescription: (charge) => described(charge),
  ChargeFrequency: () => 'Usage-Based',
  ChargePeriodEnd: ({ end }) => seconds(end),
  ChargePeriodStart: ({ begin }) => seconds(begin),
  ConsumedQuantity: ({ quantity }) => plain(quantity),
  ConsumedUnit: ({ meter }) => METERS[meter]?.unit ?? null,
  ContractedCost: ({ cost }) => plain(cost),
  ContractedUnitPrice: ({ unitPrice }) => plain(unitPrice),
  EffectiveCost: ({ cost }) => plain(cost),
  InvoiceIssuerName: () => ISSUER,
  ListCost: ({ cost }) => plain(cost),
  ListUnitPrice: ({ unitPrice }) => plain(unitPrice),
  PricingCategory: () => 'Standard',
  PricingQuantity: ({ quantity }) => plain(quantity),
  PricingUnit: ({ meter }) => METERS[meter]?.unit ?? null,
  ProviderName: () => ISSUER,
  PublisherName: () => ISSUER,
  ResourceId: ({ queue }) => queue,
  ResourceName: ({ queue }) => queue,
  ResourceType: ({ queue }) => (queue ? 'Queue' : null),
  ServiceCategory: () => 'Compute',
  ServiceName: () => ISSUER,
  ServiceSubcategory: () => 'Other (Compute)',
  SkuId: (charge) => sku(charge),
  SkuMeter: ({ meter }) => METERS[meter]?.name ?? null,
  SkuPriceId: (charge) => `${sku(charge)}/${charge.queue || 'any'}`,
  SubAccountId: ({ user }) => user,
  SubAccountName: ({ user }) => user,
  Tags: ({ queue, model }) => `{"queue": ${JSON.stringify(queue)}, "model": ${JSON.stringify(model)}}`,
  x_EnergyKilowattHours: ({ energyKwh }) => plain(energyKwh),
  x_IdleQuantity: ({ idle }) => plain(idle),
  x_LostQuantity: ({ lost }) => plain(lost),
  x_UsedQuantity: ({ used }) => plain(used),
};

/** All charges as a file; `account` is the billing account, such as the address of the server. */
export function focusCsv(charges: readonly Charge[], currency: string, account: string): string {
  const values = Object.values(COLUMNS);
  return csv([Object.keys(COLUMNS), ...charges.map((charge) => values.map((value) => value(charge, currency, account)))]);
}

/** A number without an exponent. */
const plain = (value: number) => value.toFixed(10).replace(/\.?0+$/, '');

const sku = ({ meter, model }: Charge) => `${meter}/${model || 'any'}`;

const seconds = (at: string) => at.replace(/\.\d+/, '');

function month(at: string, later: number): string {
  const date = new Date(at);
  return seconds(new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later)).toISOString());
}

function described({ meter, model, user, queue }: Charge): string {
  return `${METERS[meter]?.name ?? meter}${model ? ` of ${model}` : ''} of ${user || 'nobody'} in queue ${queue}`;
}
