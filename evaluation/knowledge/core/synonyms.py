"""Words that customers and articles of any shop or service use for the same thing, a group a line."""

from collections.abc import Mapping

# General words of customer support only: no brands, no goods of one trade. Their hash is part of a judge's
# retriever settings.
SYNONYMS: Mapping[str, str] = {
    "english": """
account login profile
accept allow permit possible
address postcode
agent adviser person human staff
answer reply respond
apologise apologize sorry
appliance device gadget machine
arrive come came receive received get got deliver delivery delivered bring brought
ask request require demand
bank card visa mastercard credit debit
basket cart checkout
bill invoice
book booking appointment slot
broken break broke damage damaged smashed cracked shattered defective faulty snapped torn
box carton packaging packed
buy bought purchase order
call phone telephone ring
cancel cancellation stop withdraw revoke abort
change amend correct edit update modify alter
charge cost fee price surcharge
cheap cheaper reduced discount sale offer bargain
choose pick select option
claim complaint complain
code voucher coupon promo promotional discount
collect collection pickup fetch pick
company business firm
courier carrier driver haulier postman
country abroad foreign international overseas
customs duty duties tax vat import
delete erase remove deletion
delay late overdue
dispatch dispatched ship shipped send sent post
email mail mailbox inbox
end terminate quit leave cancel
exchange swap replace replacement
expire expiry valid validity
fake scam phishing suspicious fraud
fast quick express urgent
free gratis complimentary
gift present surprise birthday christmas
give gave given
guarantee warranty cover covered
help support assist
hour open opening weekday weekend saturday sunday
hurt injured injury harm
instalment installment monthly month
keep kept hold held
lock locked blocked suspended
lose lost missing gone disappear
manual instruction guide
member membership club subscription
money refund refunded repay reimburse repaid cash
neighbour neighbor
newsletter subscribe subscriber unsubscribe
parcel package box shipment
password login passcode
pay paid payment money
piece item article product thing goods stuff
problem issue trouble
refuse refused decline declined reject rejected fail
repair fix mend
return send back
rule policy terms
sell sold stock available
shop store branch
sign register registration join
take took taken
talk speak contact reach
throw discard dispose rid
tracking status trace
upset angry unhappy dissatisfied
used worn wear
wait waiting pending
wrong incorrect mistake error
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
