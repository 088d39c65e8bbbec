"""Words that customers and articles of any shop or service use for the same thing, a group a line."""

from collections.abc import Mapping

# General words of customer support only: no brands, no goods of one trade. Their hash is part of a judge's
# retriever settings.
SYNONYMS: Mapping[str, str] = {
    "english": """
accept allow permit possible
account login profile
address postcode
advert advertising brochure catalogue catalog leaflet marketing
agent adviser person human staff
animal pet cat dog kitten puppy
annual yearly year
answer reply respond
apologise apologize sorry
appliance device gadget machine
arrive come came receive received get got deliver delivery delivered bring brought
ask request require demand
assemble assembled assembly build built construct
bank card visa mastercard credit debit
basket cart checkout
battery charger power cable plug electric electrical
bed bedroom mattress sleep slept
bill invoice
blocked deactivated disabled
book booking appointment slot
box carton packaging packed
branch location nearest
broken break broke damage damaged smashed cracked shattered defective faulty snapped torn
business company tax vat
buy bought purchase order
call phone telephone ring
cancel cancellation stop withdraw revoke abort
carpet rug
change amend correct edit update modify alter
charge cost fee price surcharge
cheap cheaper reduced discount sale offer bargain
choose pick select option
claim complaint complain
clean cleaning wash washing stain
code voucher coupon promo promotional discount
collect collection pickup fetch pick
colour color shade
comment review rating feedback opinion
company business firm
compensation reimbursement goodwill apology
copy duplicate extract
cost expensive price value worth
country abroad foreign international overseas
courier carrier driver haulier postman
cupboard wardrobe closet cabinet shelf furniture
customer client buyer shopper
customs duty duties tax vat import
data information details record personal private privacy
dead died die survive
delay late overdue
delete erase remove deletion
difference gap rest balance remainder
dispatch dispatched ship shipped send sent post
download pdf file document
email mail mailbox inbox
end terminate quit leave cancel
escalate ombudsman lawyer legal
exchange swap replace replacement
expire expiry valid validity
fake scam phishing suspicious fraud
family household wife husband partner spouse son daughter mother father parents
fast quick express urgent
fit size dimension measure width height narrow wide
free gratis complimentary
fresh expired spoiled rotten
gift present surprise birthday christmas
give gave given
greeting message card note
guarantee warranty cover covered
heavy weight weigh kg kilo kilos
help support assist
hour open opening weekday weekend saturday sunday
house apartment address move moved
hurt injured injury harm
identity passport id proof licence
instalment installment monthly month
invite refer referral friend
junk spam
keep kept hold held
kind type sort model
language translation english
large big bulky oversized
liable liability responsible responsibility
link url website page site
lock locked blocked suspended
lose lost missing gone disappear
lower cheaper drop dropped fall fallen reduced
manual instruction guide
member membership club subscription
mistake accident accidental
money refund refunded repay reimburse repaid cash
neighbour neighbor
newsletter subscribe subscriber unsubscribe
online internet web
parcel package box shipment
park parking kerb
password login passcode
pay paid payment money
piece item article product thing goods stuff
plant flower tree shrub rose bush garden
points reward loyalty bonus
poisonous toxic harmful safe dangerous danger
preorder preordered
problem issue trouble
proof receipt invoice
quality poor bad
quantity amount number many bulk
questionnaire survey
recall recalled unsafe safety
refuse refused decline declined reject rejected fail
reminder dunning notice letter
renew renewal extend extension prolong
repair fix mend
reserve reservation hold
return send back
rule policy terms
safe secure security protect
scratch dent scuff mark
screw bolt fitting handle
seal sealed unopened opened
sell sold stock available
shop store branch
sick ill unwell
sign register registration join
smell odour
split divide several separate
take took taken
talk speak contact reach
text sms message
throw discard dispose rid
tracking status trace
transfer wire payment
try trial test
upset angry unhappy dissatisfied
used worn wear
wait waiting pending
waive waived exception
weather frost snow heat
wrong incorrect mistake error
young child children kid kids minor age
""",
    "german": """
abbuchung lastschrift einzug abgebucht
abholen abgeholt abholung filiale
adresse anschrift
ankommen ankommt zustellung zugestellt lieferung liefern geliefert lieferzeit dauert angekommen
ändern ändere geändert korrigieren
anfrage frage
bestellung bestellen bestellt kauf kaufen gekauft
bezahlen bezahlt zahlen zahlung gezahlt
defekt kaputt beschädigt zerbrochen schaden
erstattung erstatten geld zurück gutschrift gutgeschrieben rückzahlung
gutschein rabatt code
kosten kostet preis gebühr
konto bank
kündigen kündigung beenden
kunde kundenkonto
kundendienst support mitarbeiter
nachforschung verschwunden verloren auffindbar fehlt
nachbar haus
paket päckchen sendung lieferung
rate raten monatlich
rechnung faktura
reklamation beschwerde garantie gewährleistung
rücksendung zurücksenden zurückschicken retoure rückgabe rücksendeetikett
stornieren storno widerruf widerrufen
verfolgung status sendungsverfolgung gemeldet
versand versenden verschicken
zusteller bote fahrer
""",
    "french": """
acheter achat achats commande commander
adresse domicile
annuler annulation résilier
argent remboursement rembourser remboursée remboursé
carte banque compte
cassé cassée abîmé abîmée endommagé écrasé écrasée défectueux
carton colis paquet boîte
changer modifier échanger
chercher retirer récupérer
coût coûter prix frais gratuit gratuite offert offerte
délai temps jours durée combien
facture reçu
garantie réparation réparer
livraison livrer recevoir arriver arrivent livré
livreur transporteur facteur
mot passe connexion
payer paiement
promotion réduction code bon avoir
réclamation plainte
retour retourner renvoyer renvoyés
""",
}
